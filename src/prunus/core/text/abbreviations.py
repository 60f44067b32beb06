"""Word lists that decide whether a full stop next to a word ends a sentence. Lower case, without the stop."""

from __future__ import annotations

from typing import Final

TITLES: Final = frozenset(
    """mr mrs ms mx messrs dr prof rev hon gen col capt cpt cmdr lt sgt maj adm gov sen rep pres brig comdr ens insp
    supt pvt pfc cpl sfc sens reps gens govs profs attys maj.gen lt.col e.g i.e cf vs viz z.b
    d.h u.a s.o vgl bzw p.ej p.es t.ex f.eks bl.a m.a.w prof.ssa d.ssa kath approx resp проф акад им ул пл""".split()
)
"""Titles and other abbreviations that are never the last word of a sentence."""

NAMES: Final = frozenset(
    """st mt ft fr sra srta dra drs hl hr frk fru ing dott avv arch geom rag sig sigg on mme mlle mm prov mons gg fig
    asst assoc hosp ala ariz calif colo conn fla ga kan ky md mich minn mont neb nev okla pa penn tenn tex va vt wis
    wyo figs eq eqs ca dir amm ee uu s.a""".split()
)
"""Abbreviations that are followed by a name: the last word of a sentence only where a word of STARTERS follows."""

NUMBERED: Final = frozenset(
    """ca no nos p pp art arts vol vols ch sec par para pt fig figs eq nr n° num núm n.º pág págs pag cap bd abs ziff
    kap tab abb rs u.s.c cal lib ed tel fol vers st stk pkt arp q lit pos ref chap chapt ex app hr hrs min mins sq
    ext lot rm ste refs apt bldg ft oz lb lbs qtr exh ser ver rev cra párrf lun mar mié jue vie sáb кв д оф корп
    pls""".split()
)
"""Abbreviations before a number, as ``no. 5``; elsewhere ordinary words."""

ABBREVIATIONS: Final = frozenset(
    """al etc llc bros dept univ assn ave blvd rd hwy cl dist ind esq ph.d m.d b.a m.a d.c a.d b.c
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun est min max misc abbr
    eds hrsg jhd usw evtl ggf inkl exkl str geb gest ehem dipl mwst hg red ej pbro lic arq gral cía cia
    dpto avda apdo tfno dcha izq ud uds vd vds admón osv ekskl mv jf pga vha dvs gl kgl med f.e
    гг г в вв руб коп тыс млн млрд стр рис см гл др пр т.д т.п т.е т.к и.о н.э обл р ред ss sgg segg pagg""".split()
)
"""Abbreviations that end a sentence only before a capital letter."""

BEFORE_NOUNS: Final = frozenset("inc ltd co corp jr sr mio mrd tsd mld mln fa fam med phil jur habil".split())
"""Abbreviations before nouns with a capital letter, as ``5 Mio. Euro`` and ``Acme Inc. Chief Jane Doe``: the last word
of a sentence only where a word of STARTERS or STARTERS_ELSEWHERE follows."""

STARTERS_ELSEWHERE: Final = frozenset(
    """der die das den dem ein eine einen einer er sie es wir ihr ich man wer was wie wo wann warum wenn weil da dann
    danach dabei dafür damit davon dazu daher deshalb denn doch aber und auch also als an am auf aus bei beim bis durch
    für gegen im in ins mit nach ohne seit so sowie trotz über um unter vom von vor während zu zum zur zwischen diese
    dieser dieses diesen diesem alle andere jede jeder jedes kein keine mehr nun nur noch schon sein seine ihre unser
    unsere hier dort heute gestern morgen zudem außerdem jedoch dennoch allerdings insgesamt dagegen später zuvor
    bereits laut ob obwohl nachdem bevor viele einige mehrere solche rund etwa
    le la les il elle ils elles un une ce cette cela nous vous selon el los las una en este esta esto según
    lo gli i è questo questa secondo het een hij zij dit det de en ett han hun hon jeg jag vi på dette""".split()
)
"""Words that begin a sentence in other languages than English; the more in German, whose nouns have capital letters."""

STARTERS: Final = frozenset(
    """a after all also although an and another any are as at because before being both but by can could despite did do
    does during each even every few finally first following for from had has have he hence her here his how however i
    if i'm i've i'll i'd in instead is it it's its last later let like many maybe meanwhile millions more most moreover
    much my nevertheless next no nobody none nor not nothing now of on once one only or other others our perhaps please
    several shall she should since so some someone soon still such than that that's the their then there there's
    therefore these they they're this those though through thus to today together tomorrow two under unfortunately
    unless unlike until was we we're were what when whenever where whether which while who whose why will with within
    without would yes yesterday yet you you're your""".split()
)
"""Words that begin a sentence. ``Government`` is not among them: it continues a name, as in ``U.S. Government``."""

MONTHS: Final = frozenset(
    """januar jänner februar märz april mai juni juli august september oktober november dezember january february march
    may june july october december januari februari maart mei augustus marts maj december jahrhundert jahrhunderts jh
    jahrestag januára februára""".split()
)
"""Words that follow an ordinal with a stop: ``am 13. Februar``."""

SHOUTED: Final = frozenset("yahoo yum jeopardy".split())
"""Names that are written with an exclamation mark, as ``Yahoo! Inc.``"""

LABELLED: Final = frozenset(
    """plan vitamin type column row group class grade team option exhibit appendix figure table part section schedule
    hepatitis point phase category level block series model annex hall gate room line step""".split()
)
"""Words after which a single letter is a label and not an initial: ``in column B.``"""

ZONES: Final = frozenset(
    """est edt cst cdt mst mdt pst pdt et ct pt gmt utc bst cet cest eastern central pacific mountain monday tuesday
    wednesday thursday friday saturday sunday""".split()
)
"""Words that continue a time of day: ``7 p.m. Friday``."""
