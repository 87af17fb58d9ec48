import numpy as np
import pytest
import soundfile
import tensorflow as tf

from myxtts.audio.mel import GriffinLim, griffin_lim, log_mel, mel_matrix
from myxtts.audio.picture import colour, png
from myxtts.audio.wav import read_wave, trim_silence, write_wave
from myxtts.config.config import AudioConfig
from myxtts.errors import UsageError

AUDIO = AudioConfig()


def tone(seconds: float = 1.0, hertz: float = 440.0, rate: int = AUDIO.sample_rate) -> np.ndarray:
    return (0.4 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    from myxtts.text.phonemes import Espeak, espeak

    with Espeak.lock:
        wave = espeak().speak("The quick brown fox jumps over the lazy dog.", "en-us")
    return trim_silence(wave, espeak().sample_rate)


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "mp3"])
def test_any_format_rate_and_channel_count_is_read(tmp_path, suffix):
    stereo = np.stack([tone(rate=44100), tone(rate=44100)], axis=1)
    soundfile.write(tmp_path / f"a.{suffix}", stereo, 44100)
    wave = read_wave(tmp_path / f"a.{suffix}", 22050)
    assert wave.ndim == 1 and abs(len(wave) - 22050) < 2500
    spectrum = np.abs(np.fft.rfft(wave))
    assert np.argmax(spectrum) * 22050 / len(wave) == pytest.approx(440, abs=3)


def test_what_is_no_audio_is_one_clear_error(tmp_path):
    (tmp_path / "a.wav").write_text("not sound")
    with pytest.raises(UsageError, match=r"a\.wav is not a recording"):
        read_wave(tmp_path / "a.wav", 22050)
    with pytest.raises(UsageError, match="no such recording"):
        read_wave(tmp_path / "b.wav", 22050)


def test_unwritable_output_leaves_no_half_file(tmp_path):
    with pytest.raises(UsageError, match="cannot write"):
        write_wave(tmp_path / "no" / "a.wav", tone(), 22050)
    assert list(tmp_path.iterdir()) == []


def test_silence_is_trimmed_to_a_margin_and_nothing_else():
    quiet = np.zeros(11025, np.float32)
    trimmed = trim_silence(np.concatenate([quiet, tone(), quiet]), 22050)
    assert len(trimmed) == pytest.approx(22050 + 2 * 0.05 * 22050, abs=2 * 441)
    assert len(trim_silence(quiet, 22050)) == len(quiet)


def test_mel_bands_cover_every_frequency_up_to_the_top():
    matrix = mel_matrix(AUDIO)
    inside = np.linspace(0, AUDIO.sample_rate / 2, AUDIO.n_fft // 2 + 1)
    covered = matrix.sum(axis=1) > 0
    assert covered[(inside > 30) & (inside < 7900)].all() and not covered[inside > 8100].any()


def test_a_tone_lands_in_the_band_of_its_frequency():
    for hertz in (200.0, 1000.0, 4000.0):
        mel = log_mel(tf.constant(tone(hertz=hertz)[None]), AUDIO).numpy()[0].mean(axis=0)
        centres = np.argmax(mel_matrix(AUDIO), axis=0) * AUDIO.sample_rate / AUDIO.n_fft
        assert centres[np.argmax(mel)] == pytest.approx(hertz, rel=0.08)


def test_zeros_after_a_wave_do_not_change_its_frames(speech):
    alone = log_mel(tf.constant(speech[None]), AUDIO).numpy()[0]
    padded = log_mel(tf.constant(np.pad(speech, (0, 9000))[None]), AUDIO).numpy()[0]
    assert len(alone) == AUDIO.mel_frames(len(speech))
    np.testing.assert_allclose(padded[: len(alone)], alone, atol=1e-5)


def test_mel_to_wave_and_back_is_close(speech):
    mel = log_mel(tf.constant(speech[None]), AUDIO)
    error, plain_error = (
        float(tf.reduce_mean(tf.abs(log_mel(griffin_lim(mel, AUDIO, how), AUDIO) - mel)))
        for how in (GriffinLim(), GriffinLim(momentum=0.0, corrections=0))
    )
    shifted = float(tf.reduce_mean(tf.abs(mel[:, 3:] - mel[:, :-3])))
    assert error < 0.12 and error < 0.4 * shifted
    assert error < plain_error


def test_pictures_are_png_with_the_first_row_at_the_bottom():
    pixels = colour(np.array([[0.0, 0.0], [1.0, 1.0]]), scale=3)
    assert pixels.shape == (6, 6, 3)
    assert pixels[0].sum() > pixels[-1].sum()
    decoded = tf.io.decode_png(png(pixels)).numpy()
    np.testing.assert_array_equal(decoded, pixels)


def test_a_recording_too_short_for_the_rate_is_refused(tmp_path):
    soundfile.write(tmp_path / "one.wav", np.ones(1, np.float32), 96_000)
    with pytest.raises(UsageError, match="holds no samples"):
        read_wave(tmp_path / "one.wav", 22_050)
