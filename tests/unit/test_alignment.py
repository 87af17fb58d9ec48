import itertools

import numpy as np
import pytest
import tensorflow as tf

from myxtts.models.alignment import AlignmentGuide, even_path, monotonic_search


def all_paths(tokens: int, frames: int):
    """Every way to give each token at least one frame, in order."""
    for cuts in itertools.combinations(range(1, frames), tokens - 1):
        owner = np.zeros(frames, int)
        for cut in cuts:
            owner[cut:] += 1
        yield owner


@tf.function(input_signature=[tf.TensorSpec([None, None, None]), *[tf.TensorSpec([None], tf.int32)] * 2])
def search_any_length(*given: tf.Tensor) -> tf.Tensor:
    return monotonic_search(*given)


def search(scores: np.ndarray, text_lengths, frame_lengths, how=monotonic_search) -> np.ndarray:
    return how(
        tf.constant(scores, tf.float32), tf.constant(text_lengths, tf.int32), tf.constant(frame_lengths, tf.int32)
    ).numpy()


@pytest.mark.parametrize("how", [monotonic_search, search_any_length])
@pytest.mark.parametrize("seed", range(6))
def test_search_equals_brute_force(seed, how):
    random = np.random.default_rng(seed)
    text_lengths, frame_lengths = [1, 3, 4, 5], [6, 3, 7, 9]
    scores = random.normal(size=(4, 5, 9))
    paths = search(scores, text_lengths, frame_lengths, how)
    for row, (tokens, frames) in enumerate(zip(text_lengths, frame_lengths, strict=True)):
        best = max(scores[row, owner, range(frames)].sum() for owner in all_paths(tokens, frames))
        assert (paths[row] * scores[row]).sum() == pytest.approx(best, abs=1e-4)
        owner = paths[row, :, :frames].argmax(axis=0)
        assert owner[0] == 0 and owner[-1] == tokens - 1 and set(np.diff(owner)) <= {0, 1}
        assert paths[row].sum() == frames and paths[row, tokens:].sum() == 0


def test_padding_does_not_change_the_path():
    random = np.random.default_rng(0)
    scores = random.normal(size=(1, 4, 8))
    padded = np.full((1, 9, 20), 7.0)
    padded[:, :4, :8] = scores
    np.testing.assert_array_equal(search(padded, [4], [8])[0, :4, :8], search(scores, [4], [8])[0])


def test_even_path_gives_each_token_its_share():
    path = even_path(tf.constant([2, 3]), tf.constant([4, 9]), 3, 9).numpy()
    assert path.sum(axis=2).tolist() == [[2, 2, 0], [3, 3, 3]]


def test_flat_start_finds_the_boundaries_of_distinct_sounds():
    """Clips made of known segments: from an even split, a few sweeps must find where each sound begins."""
    random = np.random.default_rng(3)
    n_mels, symbols = 20, 6
    sounds = random.normal(size=(symbols, n_mels)) * 2
    tokens, frames = np.zeros((24, 8), np.int32), np.zeros((24, 40, n_mels), np.float32)
    truth = np.zeros((24, 40), int)
    for row in range(24):
        tokens[row] = random.permutation(np.repeat(np.arange(symbols), 2))[:8]
        cuts = np.sort(random.choice(np.arange(2, 39), 7, replace=False))
        truth[row] = np.searchsorted(cuts, np.arange(40), side="right")
        frames[row] = sounds[tokens[row][truth[row]]] + random.normal(size=(40, n_mels)) * 0.3
    guide = AlignmentGuide(symbols, n_mels, 1)
    text, lengths = tf.fill([24], 8), tf.fill([24], 40)
    mask, mel = tf.ones([24, 40, 1]), tf.constant(frames)
    guide(tf.constant(tokens), mel, mask)
    path = even_path(text, lengths, 8, 40)

    def accuracy() -> float:
        return float((path.numpy().argmax(axis=1) == truth).mean())

    before = accuracy()
    for _ in range(8):
        guide.estimate(*guide.statistics(tf.constant(tokens), mel, mask, path))
        path = monotonic_search(guide(tf.constant(tokens), mel, mask), text, lengths)
    assert before < 0.7 and accuracy() > 0.9
