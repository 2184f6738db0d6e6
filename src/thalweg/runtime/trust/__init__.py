"""Who may talk to whom: certificates between nodes, tokens of users."""

from thalweg.runtime.trust.authority import issue, make_authority
from thalweg.runtime.trust.budget import Budget
from thalweg.runtime.trust.credentials import Credentials
from thalweg.runtime.trust.errors import Denied, TrustError
from thalweg.runtime.trust.users import Limits, Role, User, Users
from thalweg.runtime.trust.users_file import UsersFile

__all__ = [
    "Budget",
    "Credentials",
    "Denied",
    "Limits",
    "Role",
    "TrustError",
    "User",
    "Users",
    "UsersFile",
    "issue",
    "make_authority",
]
