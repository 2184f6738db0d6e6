"""Where rows come from and where results go: splits and the netting union."""
