"""Processes that train together: who they are, how they find each other, what they tell each other."""
