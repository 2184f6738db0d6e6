"""Questions and their answers."""

from thalweg.overlay.protocol import CancelTimer, SetTimer
from thalweg.overlay.questions import Questions


def test_an_answer_counts_once():
    questions = Questions("ask", 50)
    token, timer = questions.ask("whom")
    assert timer == SetTimer(("ask", token), 50)
    assert questions.answered(token) == ("whom", CancelTimer(("ask", token)))
    assert questions.answered(token) is None


def test_an_answer_that_comes_too_late_does_not_count():
    questions = Questions("ask", 50)
    token, _ = questions.ask("whom")
    assert questions.unanswered(token) == "whom"
    assert questions.answered(token) is None


def test_questions_are_told_apart():
    questions = Questions("ask", 50)
    tokens = [questions.ask(n)[0] for n in range(3)]
    assert [questions.answered(t)[0] for t in reversed(tokens)] == [2, 1, 0]
