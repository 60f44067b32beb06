"""``tavily``: Tavily, a search for language models that can return the text of pages. Needs a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from ...core.types import SearchRequest
from ._wire import Ask, Provider, language_of, time_range, value_at

_TOPICS = ("general", "news", "finance")

# https://docs.tavily.com/documentation/api-reference/endpoint/search; a country of no line here has no name there
_COUNTRIES: Final = """
AF afghanistan, AL albania, DZ algeria, AD andorra, AO angola, AR argentina, AM armenia, AU australia, AT
austria, AZ azerbaijan, BS bahamas, BH bahrain, BD bangladesh, BB barbados, BY belarus, BE belgium, BZ belize,
BJ benin, BT bhutan, BO bolivia, BA bosnia and herzegovina, BW botswana, BR brazil, BN brunei, BG bulgaria, BF
burkina faso, BI burundi, KH cambodia, CM cameroon, CA canada, CV cape verde, CF central african republic, TD
chad, CL chile, CN china, CO colombia, KM comoros, CG congo, CR costa rica, HR croatia, CU cuba, CY cyprus, CZ
czech republic, DK denmark, DJ djibouti, DO dominican republic, EC ecuador, EG egypt, SV el salvador, GQ
equatorial guinea, ER eritrea, EE estonia, ET ethiopia, FJ fiji, FI finland, FR france, GA gabon, GM gambia,
GE georgia, DE germany, GH ghana, GR greece, GT guatemala, GN guinea, HT haiti, HN honduras, HU hungary, IS
iceland, IN india, ID indonesia, IR iran, IQ iraq, IE ireland, IL israel, IT italy, JM jamaica, JP japan, JO
jordan, KZ kazakhstan, KE kenya, KW kuwait, KG kyrgyzstan, LV latvia, LB lebanon, LS lesotho, LR liberia, LY
libya, LI liechtenstein, LT lithuania, LU luxembourg, MG madagascar, MW malawi, MY malaysia, MV maldives, ML
mali, MT malta, MR mauritania, MU mauritius, MX mexico, MD moldova, MC monaco, MN mongolia, ME montenegro, MA
morocco, MZ mozambique, MM myanmar, NA namibia, NP nepal, NL netherlands, NZ new zealand, NI nicaragua, NE
niger, NG nigeria, KP north korea, MK north macedonia, NO norway, OM oman, PK pakistan, PA panama, PG papua
new guinea, PY paraguay, PE peru, PH philippines, PL poland, PT portugal, QA qatar, RO romania, RU russia, RW
rwanda, SA saudi arabia, SN senegal, RS serbia, SG singapore, SK slovakia, SI slovenia, SO somalia, ZA south
africa, KR south korea, SS south sudan, ES spain, LK sri lanka, SD sudan, SE sweden, CH switzerland, SY syria,
TW taiwan, TJ tajikistan, TZ tanzania, TH thailand, TG togo, TT trinidad and tobago, TN tunisia, TR turkey, TM
turkmenistan, UG uganda, UA ukraine, AE united arab emirates, GB united kingdom, US united states, UY uruguay,
UZ uzbekistan, VE venezuela, VN vietnam, YE yemen, ZM zambia, ZW zimbabwe
"""


class Engine(Provider):
    """Posts a query. The API has no second page of results; it ranks pages of the language and country higher."""

    name: ClassVar[str] = "tavily"
    home: ClassVar[str] = "https://api.tavily.com"
    filters: ClassVar[frozenset[str]] = frozenset(
        {"language", "country", "time_range", "dates", "include_domains", "exclude_domains", "topic", "want_text"}
    )
    countries: ClassVar[Mapping[str, str]] = {
        entry.strip()[:2]: entry.strip()[3:] for entry in _COUNTRIES.replace("\n", " ").split(",")
    }

    def language(self, request: SearchRequest) -> str:
        """Return the two-letter code of ISO 639-1; '' for a language without one."""
        code = language_of(request)
        return code if len(code) == 2 else ""

    def country(self, request: SearchRequest) -> str:
        """Return the name of the country, which the API takes for its general topic only."""
        return super().country(request) if self._topic(request) == "general" else ""

    @staticmethod
    def _topic(request: SearchRequest) -> str:
        return request.topic if request.topic in _TOPICS else "general"

    def ask(self, request: SearchRequest) -> Ask:
        """See :class:`prunus.web.search._wire.Provider`."""
        name, first, last = time_range(request)
        body: dict[str, Any] = {
            "query": request.query[:400],  # the API's limit
            "max_results": min(request.count, self.largest),
            "search_depth": "basic",
            "topic": self._topic(request),
            "include_raw_content": "text" if request.want_text else False,
        }
        if name:
            body["time_range"] = name
        elif first and last:
            body |= {"start_date": str(first), "end_date": str(last)}
        if language := self.language(request):
            body["language"] = language
        if country := self.country(request):
            body["country"] = country
        if request.include_domains:
            body["include_domains"] = list(request.include_domains)
        if request.exclude_domains:
            body["exclude_domains"] = list(request.exclude_domains)
        return Ask(f"{self.address}/search", headers={"authorization": f"Bearer {self._key}"}, body=body)

    def rows(self, data: Mapping[str, Any], request: SearchRequest) -> Any:
        """See :class:`prunus.web.search._wire.Provider`."""
        results = value_at(data, "results")
        if not isinstance(results, list):
            return None
        return [
            {
                **row,
                "snippet": row.get("content"),
                "text": row.get("raw_content"),
                "published": row.get("published_date"),
            }
            if isinstance(row, Mapping)
            else row
            for row in results
        ]
