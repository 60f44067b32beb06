"""The needles: sentences about things that no story knows, written for this task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Needle:
    """A question, the sentences that answer it together, and the answers."""

    question: str
    sentences: tuple[str, ...]
    answers: tuple[str, ...]


BASE = (
    Needle(
        "What does the lighthouse keeper of Varnhelm feed the blue geese?",
        ("The lighthouse keeper of Varnhelm feeds the blue geese roasted chestnuts at dawn.",),
        ("roasted chestnuts",),
    ),
    Needle(
        "In which drawer is the spare key of the Oskarlund archive?",
        ("The spare key of the Oskarlund archive is in the drawer marked forty-one.",),
        ("forty-one",),
    ),
    Needle(
        "Which instrument must be tuned before the ferry to Tillen departs?",
        ("Before the ferry to Tillen departs, the captain's hurdy-gurdy must be tuned.",),
        ("hurdy-gurdy",),
    ),
    Needle(
        "How many steps does the glass stair of Merrowdale have?",
        ("The glass stair of Merrowdale has exactly three hundred and seven steps.",),
        ("three hundred and seven",),
    ),
    Needle(
        "What colour is the ink in which treaties of Quendle are signed?",
        ("Treaties of Quendle are signed in saffron ink only.",),
        ("saffron",),
    ),
    Needle(
        "Who repaired the tower clock of Brantwick?",
        ("The tower clock of Brantwick was repaired by a beekeeper called Odile Farrow.",),
        ("Odile Farrow",),
    ),
    Needle(
        "On which weekday does the floating market of Sollen close?",
        ("The floating market of Sollen closes on every Wednesday.",),
        ("Wednesday",),
    ),
    Needle(
        "What is baked into the harvest loaf of Pellam?",
        ("A copper thimble is baked into the harvest loaf of Pellam.",),
        ("copper thimble",),
    ),
    Needle(
        "Which animal pulls the night mail of Ostervale?",
        ("The night mail of Ostervale is pulled by a retired reindeer.",),
        ("reindeer",),
    ),
    Needle(
        "What password opens the greenhouse at Marrow Hill?",
        ("The greenhouse at Marrow Hill opens to the password winter parsley.",),
        ("winter parsley",),
    ),
    Needle(
        "How deep is the well in the courtyard of the Halvard inn?",
        ("The well in the courtyard of the Halvard inn is sixty-two metres deep.",),
        ("sixty-two metres",),
    ),
    Needle(
        "Which tea does the library of Eskerby serve after closing time?",
        ("After closing time the library of Eskerby serves smoked juniper tea.",),
        ("smoked juniper tea",),
    ),
)

REASONING = (
    Needle(
        "In which town is the violin that Marta Quist built?",
        (
            "Marta Quist built the violin that is called the Grey Heron.",
            "The Grey Heron hangs in the town hall of Lindmoor.",
        ),
        ("Lindmoor",),
    ),
    Needle(
        "What does the employer of Tobias Renn make?",
        ("Tobias Renn works for the house of Kessel and Daughter.", "Kessel and Daughter make umbrellas for horses."),
        ("umbrellas for horses",),
    ),
    Needle(
        "Which river flows past the birthplace of the painter of The Ninth Orchard?",
        (
            "The Ninth Orchard was painted by Ilse Vandermoor.",
            "Ilse Vandermoor was born in the village of Hask.",
            "The river Tarrow flows past the village of Hask.",
        ),
        ("Tarrow",),
    ),
    Needle(
        "At what hour does the train leave that carries the saffron of Quimby?",
        ("The saffron of Quimby travels by the Amber Express.", "The Amber Express leaves at ten past four."),
        ("ten past four",),
    ),
    Needle(
        "What is the favourite dessert of the mayor's eldest sister in Dunmere?",
        (
            "The eldest sister of the mayor of Dunmere is Petra Lowell.",
            "Petra Lowell likes no dessert better than rhubarb trifle.",
        ),
        ("rhubarb trifle",),
    ),
    Needle(
        "Which metal is the crown of the last regatta's winner made of?",
        (
            "The last regatta of Corran was won by the crew of the Sandpiper.",
            "The crew of the Sandpiper was crowned with a wreath of tin.",
        ),
        ("tin",),
    ),
    Needle(
        "Who owns the cottage next to the mill that burned in the year of the comet?",
        (
            "In the year of the comet only the Abbot's Mill burned.",
            "The cottage next to the Abbot's Mill is owned by Jory Penhallow.",
        ),
        ("Jory Penhallow",),
    ),
    Needle(
        "How many windows has the school that Ana Belmonte's teacher founded?",
        (
            "Ana Belmonte was taught by Rufus Hale.",
            "Rufus Hale founded the round school at Wickersea.",
            "The round school at Wickersea has nineteen windows.",
        ),
        ("nineteen",),
    ),
)

MULTI_ANSWER = (
    Needle(
        "What did the three explorers of Vantar leave at the pole?",
        (
            "At the pole the first explorer of Vantar left a silver whisk.",
            "At the pole the second explorer of Vantar left a jar of plums.",
            "At the pole the third explorer of Vantar left a wooden abacus.",
        ),
        ("silver whisk", "jar of plums", "wooden abacus"),
    ),
    Needle(
        "Which flavours of ice does the harbour kiosk of Jelling sell?",
        (
            "The harbour kiosk of Jelling sells ice that tastes of fennel.",
            "Ice of burnt honey is also sold at the harbour kiosk of Jelling.",
            "In July the harbour kiosk of Jelling sells ice of black bread.",
            "The oldest ice of the harbour kiosk of Jelling tastes of quince.",
        ),
        ("fennel", "burnt honey", "black bread", "quince"),
    ),
    Needle(
        "Which villages does the wandering library of Old Harrow visit?",
        (
            "The wandering library of Old Harrow visits Tansy on Mondays.",
            "Later the wandering library of Old Harrow stops in Coldbrook.",
            "At the end of the week the wandering library of Old Harrow reaches Netherby.",
        ),
        ("Tansy", "Coldbrook", "Netherby"),
    ),
    Needle(
        "What is needed to make the dye of kelp green at Esk?",
        (
            "The dye of kelp green at Esk needs crushed nettle.",
            "No dye of kelp green at Esk succeeds without oyster lime.",
            "A spoon of rusty vinegar completes the dye of kelp green at Esk.",
        ),
        ("crushed nettle", "oyster lime", "rusty vinegar"),
    ),
    Needle(
        "Who sits on the council of lamplighters in Brill?",
        (
            "Agnes Tull sits on the council of lamplighters in Brill.",
            "The council of lamplighters in Brill also has Corwin Shaw as a member.",
            "The youngest member of the council of lamplighters in Brill is Nadia Fenn.",
        ),
        ("Agnes Tull", "Corwin Shaw", "Nadia Fenn"),
    ),
    Needle(
        "Which prizes were given at the kite festival of Lowen?",
        (
            "One prize at the kite festival of Lowen was a barrel of cider.",
            "Another prize at the kite festival of Lowen was a pair of skates.",
            "The last prize at the kite festival of Lowen was a brass compass.",
        ),
        ("barrel of cider", "pair of skates", "brass compass"),
    ),
    Needle(
        "Which colours has the flag of the raftsmen of Umber?",
        (
            "The upper stripe of the flag of the raftsmen of Umber is ochre.",
            "The middle stripe of the flag of the raftsmen of Umber is teal.",
            "The lower stripe of the flag of the raftsmen of Umber is ivory.",
        ),
        ("ochre", "teal", "ivory"),
    ),
    Needle(
        "Which tools did the burglar of the Hotel Mirabeau forget?",
        (
            "The burglar of the Hotel Mirabeau forgot a velvet crowbar.",
            "A folding ladder, too, was forgotten by the burglar of the Hotel Mirabeau.",
            "Under the bed the burglar of the Hotel Mirabeau forgot a dentist's mirror.",
        ),
        ("velvet crowbar", "folding ladder", "dentist's mirror"),
    ),
)
