"""What readers of several formats share: archives, XML, formulas, HTML that is written."""
