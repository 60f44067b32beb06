"""Where English sentences end, topic by topic; ``|`` marks the cuts, ``\\n`` a line break."""

from __future__ import annotations

import pytest

from prunus.core.text.words import sentences

TOPICS = {
    "times of day": """
At 5 a.m. Mr. Jones rode to the mill.| He came home at 6 P.M.| Mr. Jones then had supper.
At 7 p.m. Anna left.
We met at 7 p.m.| Anna left early.
Doors open at 6:30 p.m.| Tickets are free.
The show starts at 7 p.m. Friday in the hall, and the call is at 10 a.m. EST.
It is 5 p.m.!| Hurry.
""",
    "initials and acronyms": """
J.P. Morgan spoke with W. E. B. Du Bois.| George W. Bush did not.
You and I.| We are one.
Did you see Carl I. Hart there?
He works for the F.B.I. in Ohio.| She is with the C.I.A.| They met.
The U.S. Drug Office (USDO) called.| Nobody answered.
The U.S.S.R. fell in 1991.| Russia followed.
""",
    "letters that are no initials": """
It is in column B.| Look there.
Vitamin C.| Doctors like it.
That is Paul's.| Come in.
The old one doesn't.| Dogs do.
See Table A.| Read it.
""",
    "titles and degrees": """
Gen. Lee, Lt. Col. Gray and Sgt. Hill met Gov. Brown.| Sen. Reed was away.
Brig. Hale and Pvt. Gray met Adm. Lee.| He was then Asst. Supt. of schools.
Mr./Mrs. Gray and Mr. & Mrs. Hale came.
He has a Ph.D. in physics.| She has an M.D. from Yale.
Is she a Ph.D.?| Yes.
The talk is with Dr.\\nGray.
""",
    "firms": """
Were Tom and co. at the fair?| Ask Tom and co.| They were there.
The firm is Reed, Hale & Co.| It opened in May.
The Acme Co. Ltd. is big.| Foo Inc.'s shares fell.
It was made by Acme Inc. (NASDAQ: ACM) in 2010.
""",
    "places": """
We climbed Mt. Rainier near St. Paul's house.
She lives on 9th st. near the park.
He lives in Tampa, Fla.| She lives in Austin, Tex. with him.
He is in Bldg. 5, Apt. 6, Rm. 7.| Go.
""",
    "references": """
See p. 12 and pp. 13-15.| Then stop.
See Eq. (3) and Sec. 4.2 of Vol. 2, No. 4.| Then stop.
See Chap. V.| Read it.| See refs. 6 and 7.
Smith et al. (2005) showed it.| Lee et al. did not.
See 28 U.S.C. \u00a7 1332.| It says so.
In re Gray, 5 F.3d 10 (9th Cir. 1995).| It says so.
""",
    "numbers of notes": """
A gap may open in a talk.11 12| Take the case of a cold.
The idea is old (see type 2).10| This view is new.
He said "yes."7| Then he left.
It was old.[1][2]| The new one was not.
""",
    "numbers and measures": """
Its price was $40.00.| We paid.
Its price was $40.00 in all, or .5 of it.
He is 5 ft. 6 in. tall.| She is 6 ft.
He was born ca. 1850 and died c. 1900.| His son lived.
He lies at N\u00b0. 34.556.123.| Dig there.
40.7128\u00b0 N, 74.0060\u00b0 W is New York.| Go there.
On Mon. Mar. 5 he left.| It was in Dec.| Everyone was cold.
""",
    "headings": """
II. Methods and data
3.2. Results of the trial
Louis XIV.| He was king.
Louis XIV. was king.
""",
    "names with a mark": """
He worked at Yahoo! in sales.| Yahoo! Inc. was sold.
Yum! Brands owns it.
I want it now!, he said.| Why not? he asked.
""",
    "quotations": """
"Stop!" he cried.| "Why?" she asked.
He asked "Why? What for?" and left.| Nobody knew.
'Oh my! Oh my! I am late!' (it seemed odd later, but not then); but the Rabbit ran on.| In a moment she was gone.
Sales were flat.| `` Who cares? Not I! '' asks Rep. Norm Gray (D., Wash.).| He said: `` The ships! The men! ''
\u201cYes!\u201d| \u201cNo?\u201d| \u201cMaybe.\u201d
""",
    "dialogue": """
What is there?| - Rows of silent men on the quay.
Some can be -- may I say so? -- odd.
""",
    "brackets": """
He cooks (He was once a chef.) at the local inn.
This (and that!) is nice.| So is it.
He said this (see Fig. 1.).| Then he left.
"Gray [...] made the claim [...]" (Hale 12).
""",
    "ellipses": """
I don't know...| Maybe tomorrow.
Well... maybe tomorrow.| Wait\u2026what?
One habit which was lost . . . was that of waving.
He left . . . .| Then it rained.
""",
    "lists": """
1.) First thing| 2.) Second thing
(1) First thing| (2) Second thing| (3) Third
1. Wash it.| 2. Dry it.| 3. Fold it.| Then rest.
1. First thing| 2. Second thing| 1. Another first| 2. Another second
The steps are| 1. Open the box| 2. Take it out| 3. Close it
\u2022 9. Ninth thing| \u2022 10. Tenth thing
\u20439. Ninth thing| \u204310. Tenth thing
\u2022 9. Quit smoking \\n| \u2022 10. Sleep enough \\n \\n| You have the best chance if you follow \\na few simple rules:
""",
    "addresses": """
Write to Ann.Lee@mail.example.org.| She will answer.
Visit https://www.example.org/a.b/c.html.| It is there.
Use Node.js or ASP.NET for it.| The .NET runtime is old.
Look at example.com/a?b=c.d for it.| Good.
""",
    "missing spaces": """
The quality was low.|As Gray and Hale (2005) claim, it is.| So it goes.
""",
}  # fmt: skip


CASES = [
    pytest.param(line.replace("\\n", "\n"), id=f"{topic} {number}")
    for topic, lines in TOPICS.items()
    for number, line in enumerate(lines.strip().splitlines(), 1)
]


@pytest.mark.parametrize("case", CASES)
def test_sentences_end_where_a_reader_ends_them(case: str) -> None:
    text = case.replace("|", "")
    found = sentences(text)
    assert "".join(found) == text
    assert [part.strip() for part in found] == [part.strip() for part in case.split("|")]
