"""English sentences from a small grammar and a word list of our own, wide enough to hear every sound of the language.

In: how many sentences and a seed.
Out: distinct sentences, the same ones for the same seed.
"""

import random


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.replace("\n", "|").split("|") if phrase.strip()]


PEOPLE = _phrases("""
    the farmer | my sister | our teacher | the captain | a young doctor | the baker | his cousin | the old sailor
    her neighbour | the judge | the watchmaker | a quiet student | the gardener | my uncle | the engineer
    their daughter | the nurse | an honest lawyer | the painter | a clever thief | the shepherd | the mayor
    your brother | the pilot | a tired driver | the singer | the postman | our guide | the librarian | a stranger
    George | Julia | Thomas | Victoria | Charlotte | Joyce | Hugh | Ruth | Vivian | Zachary
""")

PAST = _phrases("""
    carried | noticed | measured | borrowed | described | finished | forgot | found | gathered | hid | painted
    pushed | questioned | reached | remembered | repaired | replaced | saved | sold | studied | touched | watched
    weighed | wrapped | bought | brought | changed | chose | cleaned | counted | delivered | destroyed | discovered
    enjoyed | examined | followed | judged | kept | lifted | loved | moved | opened | polished | pulled | searched
    shared | showed | threw | treasured | used
""")

THINGS = _phrases("""
    boat | letter | garden | bridge | mirror | basket | violin | journal | kettle | lantern | blanket | candle
    carriage | wooden chair | church bell | cottage | diamond | drawing | engine | feather | fence | glove | hammer
    horse | jewel | ladder | leather bag | machine | measuring rod | message | needle | oil lamp | orange | package
    pearl | picture | piano | pillow | puzzle | ring | road map | rope | saddle | scarf | shelf | shovel
    silver coin | statue | stove | sweater | table | telescope | thread | ticket | tower | toy soldier
    treasure chest | umbrella | vase | village house | wagon | wallet | watch | wheel | whistle | window | wool coat
    yellow dress | youth club | zebra mask
""")

QUALITIES = _phrases("""
    old | broken | heavy | beautiful | strange | small | golden | narrow | empty | curious | huge | quiet | dusty
    bright | smooth | rough | thick | thin | useful | valuable | French | Chinese | familiar | ordinary | precious
    loose | round | joyful | enormous | gray | worthless | unusual | pleasant | ugly | shiny | genuine | frozen
    royal | cheap | purple
""")

PLACES = _phrases("""
    near the river | behind the school | in the kitchen | under the bridge | at the harbour | across the valley
    beside the fire | on the roof | in a foreign country | along the shore | inside the cathedral
    at the edge of the forest | beyond the hills | between two houses | outside the theatre
    in the middle of the square | on the third floor | at the railway station | over the mountains
    from the south of the island | around the corner | by the northern gate | in a crowded market
    below the surface | against the garden wall | through the open door | without any help | among the trees
    at the university | on a wooden bench | in the hospital | towards the castle | above the clouds
    within the city | after the long voyage
""")

TIMES = _phrases("""
    this morning | yesterday | last Thursday | before noon | every evening | in January | at midnight | once again
    for three hours | during the winter | in the year eighteen forty-five | after breakfast | two weeks ago
    on the fifth of July | very early | all summer | at half past nine | long ago | in February | on Wednesday
    for the first time | just now | a moment later | until the end of August | since nineteen ninety-seven | at last
    by accident | with great care | without a word | as usual
""")

MANNERS = _phrases("""
    slowly | quickly | gently | with pleasure | carefully | suddenly | rather badly | eagerly | calmly | in silence
    cheerfully | thoughtfully | by hand | in a hurry | patiently | with both hands | quietly | usually | proudly
    without doubt
""")

SCENES = _phrases("""
    the wind | the weather | the water | the music | the crowd | the fire | the moon | the noise
    the price of bread | the road | the whole village | the evening sky | the question | the truth
    the long journey | the smell of coffee | a thin layer of snow | the voice on the radio | the army | the ship
    our house | the government | the law | her health | the work | the garden | his answer | the bird | the child
    the sea | the ice | thunder | the youngest child | the yellow light | the northern railway
    the judge's decision | the measure | the usual path | their knowledge | the museum | each page
    the history of the town | the earth | the sugar | the air | the machine | a good beginning
    the cause of the fire | the president | the treasure | the news
""")

STATES = _phrases("""
    was colder than we thought | grew quiet | became very loud | had changed completely | was worth the trouble
    seemed familiar to everyone | could be heard for miles | was full of surprises | turned green and blue
    gave us no choice | began to shake | made them laugh | was never found again | would have pleased my father
    is known to be false | looked smooth and clear | must not be ignored | moved toward the south
    caused a great deal of damage | was much too short | has always been a mystery | came as a shock
    should be thoroughly checked | filled the whole room | was beyond measure | is usually enough
    vanished in the fog | kept me awake | was sharp as a knife | does not belong to you | proved to be right
    went from bad to worse | was a joy to watch | would soon be over | failed at the first test
    depends on the season | might improve by Friday | appeared to be poisoned | was divided into four parts
    is larger than a mouse | may cost another hundred pounds | left nothing but dust | rose above the old walls
    was of no importance | remained under the usual control | attracted large numbers of people | is as good as gold
    was nearly forgotten
""")

OPENINGS = _phrases("""
    However | In fact | After all | To be honest | For example | Of course | By the way | In the beginning
    Fortunately | As far as I know | According to the law | On the other hand | At that time | Strangely enough
    Without any warning | Once more | In his opinion
""")

COMMANDS = _phrases("""
    Please close | Never touch | Do not open | Remember to bring | Look at | Try to fix | Think about | Choose
    Give back | Put away | Take care of | Bring me | Ask about | Throw away | Wash | Measure | Show us | Leave
    Draw | Join
""")

QUESTIONS = _phrases("""
    Why did | When did | How could | Where did | Would | Did | Could | Should | How often did
""")

PRESENT = _phrases("""
    carry | notice | borrow | describe | finish | forget | gather | hide | paint | push | reach | repair | save
    sell | study | touch | watch | weigh | buy | change | choose | clean | destroy | enjoy | follow | judge | move
    pull | search for | use
""")

NUMBERS = _phrases("""
    two | three | four | five | six | seven | eight | nine | ten | eleven | twelve | thirteen | fifteen | sixteen
    eighteen | twenty | twenty-one | thirty | forty | fifty-six | sixty | seventy-seven | eighty | ninety
    a hundred | three hundred and five | a thousand | four thousand
""")

PLURALS = _phrases("""
    boxes | oranges | horses | soldiers | pages | bridges | churches | watches | roses | leaves | knives | months
    clothes | thieves | voices | songs | boys | girls | eggs | apples | matches | keys | towns | villages | stars
    judges | wolves | cases | bananas | shoes | teeth | letters | orders | prisoners | witnesses | weapons
    examples | authorities | shadows | pictures | measures
""")

SUBJECTS = _phrases("""
    evidence | department | protein | compound | description | prisoner | generalization | perplexity | lesson
    mortar | ration | investigation | question | answer | expression | freedom | independence | butter | teaspoon
    salt | vegetable | potato | tomato | onion | garlic | cabbage | pepper | vinegar | lemon | apricot | strawberry
    chocolate | biscuit | pudding | sandwich | breakfast | supper | appetite | recipe | oven | opinion | religion
    education | revolution | constitution | population | temperature | atmosphere | electricity | chemistry
    biology | physics | mathematics | geography | philosophy | psychology | literature | poetry | grammar
    dictionary | alphabet | paragraph | sentence | hydrogen | oxygen | nitrogen | carbon | mercury | aluminum
    copper | iron | silver | granite | marble | limestone | gravel | clay | justice | patience | courage | jealousy
    loyalty | honesty | curiosity | imagination | ambition | wisdom | ignorance | poverty | charity | anxiety
    sorrow | happiness | friendship | marriage | childhood | adolescence | retirement | funeral | ceremony
    festival | carnival | parliament | congress | senate | treaty | election | ambassador | minister | governor
    commissioner | secretary | treasurer | inspector | detective | witness | suspect | murder | robbery | burglary
    prison | courtroom | lawyer | verdict | testimony | punishment | rifle | pistol | cartridge | bullet | gunpowder
    explosion | cannon | fortress | trench | battlefield | regiment | sergeant | lieutenant | hospital | surgeon
    medicine | fever | pneumonia | bandage | stomach | shoulder | elbow | ankle | finger | thumb | eyebrow
    forehead | skeleton | muscle | kidney | liver | lung | artery | nerve | brain | vision | hearing | taste | smell
    memory | attention | elephant | giraffe | leopard | monkey | squirrel | rabbit | hedgehog | beaver | otter
    badger | weasel | buffalo | camel | donkey | sparrow | eagle | vulture | pigeon | swallow | ostrich | penguin
    peacock | chicken | turkey | salmon | herring | lobster | oyster | mosquito | butterfly | beetle | spider
    scorpion | lizard | tortoise | crocodile | snake | frog | willow | maple | chestnut | walnut | cedar | juniper
    orchid | daisy | violet | tulip | jasmine | clover | ivy | moss | bicycle | tractor | locomotive | submarine
    aeroplane | helicopter | parachute | balloon | rocket | satellite | planet | comet | thermometer | microscope
    compass | hourglass | calendar | newspaper | magazine | photograph | camera | television | telephone | computer
    keyboard | printer | software | network | battery | cable | switch | lever | pulley | spring | gear | bearing
    carpenter | plumber | mechanic | tailor | butcher | grocer | jeweller | barber | shoemaker | blacksmith
    architect | sculptor | violinist | trumpet | orchestra | symphony | melody | rhythm | chorus | theatre | comedy
    tragedy | audience | applause | Monday | Tuesday | September | October | November | December | Africa | Asia
    Europe | America | Australia | Egypt | Persia | Norway | Scotland | Ireland | Brazil | Mexico | Dallas | Chicago
    Oxford | Cambridge | Venice | Vienna | Moscow | Tehran | Tokyo | Shanghai | avenue | boulevard | alley | highway
    tunnel | canal | harbour | lighthouse | warehouse | factory | chimney | balcony | staircase | cupboard | drawer
    mattress | curtain | carpet | cushion | napkin | saucer | spoon | fork | bucket | broom | soap | towel
    toothbrush | jacket | trousers | necktie | handkerchief | slipper | bracelet | necklace | earring | buckle
    zipper | velvet | cotton | tobacco | whisky | brandy | champagne | coffee | cinnamon | ginger | honey | syrup
    flour | wheat | barley | weather | hurricane | blizzard | drizzle | hail | sunshine | twilight | midnight
    eclipse | horizon | glacier | volcano | earthquake | avalanche | waterfall | reservoir | peninsula | archipelago
    desert | prairie | jungle | meadow | pasture | vineyard | orchard | measure | pleasure | treasure | leisure
    closure | decision | division | occasion | garage | youth | union | unit | uniform | universe | yesterday
    yogurt | yacht | yard | yarn | thought | thirst | theft | theory | thunder | throat | thorn | feather | leather
    brother
""")

VERSES = _phrases("""
    Wool and oil were shipped by the usual route | Joy is a measure of how we live
    A vision of the azure sea gave him pleasure | The judge chose a large orange from each basket
    Thick fog hid the youth hostel by the shore | Both brothers breathe the thin northern air
    The hungry singer sang a long song in spring | We heard a loud noise in the boiler room
    You should put the good sugar by the full woolen bag | The boy enjoyed the oyster but avoided the moist toast
    There were rare bears and a pair of hares everywhere | Near the pier we hear clear cheers from a queer engineer
    Our hour of power came with a shower of flowers | The poor tourist was sure the tour would cure him
    Father's car was parked far from the dark yard | Early birds heard the nurse search the earth for worms
    Few new cubes were used by the huge community | The vague league argued about a rogue plague
    Quick foxes question quiet queens with fixed wax boxes | Whether the weather is fine or whether it is not
    The fifth twelfth and sixth months brought strength and wealth
    She sells sea shells and he washes fish in the ocean | Casual visitors usually measure the garage in leisure
    The thirty-three thieves thought that they thrilled the throne | Two zealous zebras zoomed across the frozen zoo
    I might hide nine bright white kites on Friday night | How now did the brown cow drown the loud crowd
    Cheap cheese and rich peaches were within each child's reach | Seven heavy feathers rest on the red leather bed
    Big pigs live in thin tin ships and sit on six bricks | A glad man had a black cat and a bad hat
    Some love comes from above the dusty oven | Call all tall author's daughters to the lawn at dawn
    Go home slowly and show Joe the gold on the boat | The blue moon soon proved too cool for the smooth fruit
    Eight great whales waited by the gray gate all day
""")


def _noun_phrase(pick: random.Random) -> str:
    """`the old boat`, `an empty basket`, `seven oranges`."""
    kind = pick.random()
    if kind < 0.2:
        quality = pick.choice(QUALITIES) + " " if pick.random() < 0.4 else ""
        return f"{pick.choice(NUMBERS)} {quality}{pick.choice(PLURALS)}"
    words = f"{pick.choice(QUALITIES)} {pick.choice(THINGS)}" if pick.random() < 0.6 else pick.choice(THINGS)
    if kind < 0.4:
        return f"{'an' if words[0] in 'aeio' or words.startswith(('ug', 'um', 'unu')) else 'a'} {words}"
    return f"{pick.choice(['the', 'the', 'his', 'her', 'our', 'their', 'that', 'this', 'my', 'your'])} {words}"


def _remark(pick: random.Random) -> str:
    """A sentence around words that the other rules never use."""
    one, two, three = pick.sample(SUBJECTS, 3)
    return pick.choice(
        [
            f"they spoke about {one}, {two} and {three}.",
            f"{pick.choice(PEOPLE)} knew nothing of {one} or {two}.",
            f"between {one} and {two} lies {three}.",
            f"{one} and {two} are not the same as {three}.",
            f"what do {one} and {two} have to do with {three}?",
            f"{pick.choice(PEOPLE)} wrote a book on {one} and {two}.",
            f"without {one} there would be no {two}.",
            f"his {one} was better than her {two}.",
        ]
    )


def _clause(pick: random.Random) -> str:
    """A statement without capital and full stop."""
    if pick.random() < 0.45:
        return f"{pick.choice(SCENES)} {pick.choice(STATES)}"
    parts = [pick.choice(PEOPLE), pick.choice(PAST), _noun_phrase(pick)]
    if pick.random() < 0.2:
        parts.insert(1, pick.choice(["slowly", "quickly", "carefully", "suddenly", "gently", "usually", "quietly"]))
    if pick.random() < 0.55:
        parts.append(pick.choice(PLACES))
    if pick.random() < 0.25:
        parts.append(pick.choice(TIMES))
    return " ".join(parts)


def _sentence(pick: random.Random) -> str:
    kind = pick.random()
    if kind < 0.28:
        text = _clause(pick) + "."
    elif kind < 0.36:
        text = f"{pick.choice(OPENINGS)}, {_clause(pick)}."
    elif kind < 0.41:
        text = f"{pick.choice(TIMES)}, {_clause(pick)}."
    elif kind < 0.55:
        joint = pick.choice(
            [", and", ", but", " because", " while", ", which was true until", ", although", " when", ", so"]
        )
        text = f"{_clause(pick)}{joint} {_clause(pick)}."
    elif kind < 0.60:
        text = f"{pick.choice(COMMANDS)} {_noun_phrase(pick)} {pick.choice(PLACES + MANNERS)}."
    elif kind < 0.65:
        text = f"{pick.choice(QUESTIONS)} {pick.choice(PEOPLE)} {pick.choice(PRESENT)} {_noun_phrase(pick)}?"
    elif kind < 0.69:
        text = (
            f"{pick.choice(NUMBERS)} {pick.choice(PLURALS)} and {_noun_phrase(pick)} were left {pick.choice(PLACES)}."
        )
    else:
        text = _remark(pick)
    return text[0].upper() + text[1:]


MAX_CHARACTERS = 84  # under five seconds of speech
EVALUATED, EVALUATION_SEED = 50, 22


def make_sentences(count: int, seed: int = 0) -> list[str]:
    """Distinct sentences; the hand-made ones with the rarer sounds come first."""
    pick = random.Random(seed)
    sentences = dict.fromkeys(f"{verse}." for verse in VERSES[:count])
    while len(sentences) < count:
        sentence = _sentence(pick)
        if len(sentence) <= MAX_CHARACTERS:
            sentences.setdefault(sentence)
    return list(sentences)


def evaluation_sentences() -> list[str]:
    """What a voice is scored by where no sentences are given; the voice in the package was not trained on them."""
    return make_sentences(6 * EVALUATED, EVALUATION_SEED)[-EVALUATED:]
