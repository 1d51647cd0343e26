"""Networks, losses and steps that later lessons reuse; each is a cell of the lesson it names."""
