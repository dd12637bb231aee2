"""The paper's tables and figures, each by one function and one command, with a page of results."""
