"""An experiment: an agent that keeps or drops the blocks of a page, learned from rewards (``prunus train policy``)."""
