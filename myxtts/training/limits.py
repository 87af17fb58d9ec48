"""When a run ends: at its nearest limit, or once its held-out loss says that it is clear.

In: the settings, the counters of the run, the seconds it took.
Out: shares of the way to the end, which also lead the learning rate down.
"""

from myxtts.checkpoint.state import RunState
from myxtts.config.config import TrainingConfig

SETTLES = 0.25  # steps in which the rate falls, as a share of those before (Hu et al. 2024: a tenth and more is enough)
LAST = 0.2  # share of the time that is left for it where the loss was never low enough


class Limits:
    """The limits of one run.

    With `clear_loss`, the learning rate stays where it is until the held-out mel loss is that low; then it falls, in
    a quarter of the steps made until then, and the run ends (warm-up, stable, decay: Hu et al. 2024). The time limit
    still holds: the rate falls in its last fifth at the latest.
    """

    def __init__(self, config: TrainingConfig, state: RunState, batches_per_epoch: int):
        self._config, self._state, self._epoch = config, state, batches_per_epoch

    def progress(self, seconds: float) -> float:
        """How far the run has come towards its nearest limit."""
        shares = [self._state.step / self._config.max_steps, self.elapsed(seconds)]
        if self._config.epochs:
            shares.append(self._state.batches / (self._config.epochs * self._epoch))
        return max(shares)

    def elapsed(self, seconds: float) -> float:
        """The part of it that steps and epochs do not tell."""
        spent = self._spent(seconds)
        if not self._config.clear_loss:
            return spent
        late = 1 - (1 - spent) / LAST
        begun = self._state.clear_at
        settled = (self._state.step - begun) / _settling(begun) if begun is not None else 0.0
        return max(0.0, late, settled)

    def shown(self, seconds: float) -> float:
        """The same for people: the share of the whole run that lies behind, as far as that can be told."""
        if not self._config.clear_loss:
            return min(1.0, self.progress(seconds))
        begun = self._state.clear_at
        if begun is None:  # what it may take at most
            return min(1.0, max(self._state.step / self._config.max_steps, self._spent(seconds)))
        return min(1.0, self._state.step / (begun + _settling(begun)))

    def _spent(self, seconds: float) -> float:
        """The share of the time that the run may take; 0 where that has no limit."""
        return seconds / (60 * self._config.max_minutes) if self._config.max_minutes else 0.0

    def note_validation(self, mel_loss: float) -> str:
        """Takes down that a run is clear; says so once, and not when it is over in any case."""
        if not self._config.clear_loss or self._state.clear_at is not None or mel_loss > self._config.clear_loss:
            return ""
        if self.progress(self._state.seconds) >= 1.0:
            return ""
        self._state.clear_at = self._state.step
        more = round(SETTLES * self._state.step)
        return f"clear: held-out mel loss {mel_loss:.3f} ({self._config.clear_loss:g} wanted); {more} steps to settle"

    @property
    def patience_is_over(self) -> bool:
        return 0 < self._config.early_stop <= self._state.validations_since_best

    def why_complete(self) -> str:
        """What to change so that the run goes on; empty when it is not complete."""
        if self._state.clear_at is not None and self.elapsed(self._state.seconds) >= 1.0:
            done = "its held-out loss was clear and its learning rate has fallen"
            return f"{done}; begin another from it with `training.init_from`"
        if self.progress(self._state.seconds) >= 1.0:
            return "raise its limit (`training.max_steps`, `training.epochs`, `training.max_minutes`)"
        if self.patience_is_over:
            number = self._state.validations_since_best
            return f"{number} validations were no better; raise `training.early_stop`, or set 0 for no limit"
        return ""


def _settling(begun: int) -> float:
    """Steps in which the learning rate falls."""
    return max(1.0, SETTLES * begun)
