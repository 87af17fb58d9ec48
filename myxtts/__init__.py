"""MyXTTS: trains a voice-cloning speech model on one's own recordings and speaks with it."""

__version__ = "0.2.0"
