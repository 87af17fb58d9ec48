"""`myxtts demo`."""

import argparse
from pathlib import Path

from rich.console import Console

from myxtts.cli.display import counting_display, report_lines, training_display
from myxtts.cli.prepare import prepare_and_report
from myxtts.cli.settings import make_folder
from myxtts.config.config import TrainingConfig
from myxtts.errors import UsageError

FEWEST_SENTENCES, MOST_SENTENCES = 40, 20_000
LONGER = "myxtts demo --minutes 30 trains longer"
MARK = ".myxtts-demo"  # stands in a folder that the demo may write over


def run(options: argparse.Namespace) -> int:
    """Corpus, preparation, training, speech, page."""
    if options.minutes is not None and not 0 < options.minutes <= 120:
        raise UsageError(f"--minutes is {options.minutes:g}; it must be more than 0 and at most 120")
    if options.sentences < FEWEST_SENTENCES:
        raise UsageError(f"--sentences is {options.sentences}; it must be at least {FEWEST_SENTENCES}")
    if options.sentences > MOST_SENTENCES:
        raise UsageError(f"--sentences is {options.sentences}; it must be at most {MOST_SENTENCES}")
    TrainingConfig(seed=options.seed)
    folder = Path(options.folder)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; choose another --folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise UsageError(f"{folder} holds files that the demo did not make; choose another --folder")
    from myxtts.data.cache import learn_tokenizer
    from myxtts.demo.corpus import make_corpus
    from myxtts.demo.voices import choose_voice
    from myxtts.text.tokenizer import spell

    voice = choose_voice(options.voice)
    for text in options.say:
        spell(text, "en", "phonemes")
    make_folder(folder, "choose another --folder")
    console = Console()
    console.print(f"🎙️ Making a corpus of {options.sentences} sentences, read by {voice}", highlight=False, markup=False)
    from myxtts.runtime import import_tensorflow

    import_tensorflow()
    from myxtts.demo import demo

    (folder / MARK).touch()
    lap = demo.stopwatch()
    with counting_display(console) as progress:
        corpus = make_corpus(folder / "corpus", voice, options.sentences, options.seed, progress)
    corpus_seconds = lap()
    config = demo.demo_config(folder, voice, options.minutes, options.seed)
    pack = prepare_and_report(corpus.folder, config, console)
    tokenizer = learn_tokenizer([pack], config)
    for text in [*options.say, *(text for text, _ in corpus.unseen)]:
        tokenizer.encode(text, "en")  # what could not be spoken after the training is refused before it
    prepare_seconds = lap()
    until = (
        f"at most {demo.MOST_MINUTES:g} minutes, until it is clear"
        if options.minutes is None
        else (f"{options.minutes:g} minutes")
    )
    console.print(f"🏋️ Training a tiny model from nothing: {until}", highlight=False, markup=False)
    with training_display(console) as show:
        summary, recorder = demo.train(config, show)
    for line in report_lines(summary):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if not recorder.clear(config):
        console.print(
            f"⚠️ The time ran out before the voice was clear (this machine is slow or busy); {LONGER}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    train_seconds = lap()
    console.print("🗣️ Speaking sentences that it never saw", highlight=False, markup=False)
    pairs, spoken, seconds = demo.speak(config, corpus, options.say, folder / "spoken")
    timings = demo.Timings(corpus_seconds, prepare_seconds, train_seconds, lap(), seconds)
    listing = "".join(f"{path.resolve()}|{text}\n" for path, text in spoken)
    (folder / "spoken.lst").write_text(listing, encoding="utf-8")
    page = demo.write_page(folder, corpus, pairs, recorder, summary, timings)
    console.print(f"✅ Listen: {page.resolve()}", highlight=False, markup=False, soft_wrap=True)
    console.print(demo.NEXT_STEP, highlight=False, markup=False, soft_wrap=True)
    return 0
