"""How each language says what is written in signs: separators, money, units, dates, times, abbreviations.

In: a language code.
Out: a `Speech` table; words in several forms are (one, other) or, for Slavic languages, (one, few, many).
"""

from dataclasses import dataclass, field

Forms = tuple[str, ...]


@dataclass(frozen=True)
class Speech:
    """The words of one language. `{}` in a pattern is filled with numbers already in words."""

    point: str  # between the whole and the fraction of a number
    minus: str
    percent: Forms
    signs: dict[str, str]  # single characters as words
    months: Forms = ()  # as they stand behind a day; none where the language counts its months
    decimal: str = ","  # written separators
    groups: str = "."
    order: str = "dmy"  # of a date in digits
    date: str = "{day} {month} {year}"
    time: str = "{hour} {minute}"
    full_hour: str = "{hour}"
    hour_word: str = ""  # stands behind a time and is already said by `time`
    percent_first: bool = False
    fraction: str = "{above} {over} {below}"
    over: str = ""
    money: dict[str, Forms] = field(default_factory=dict)
    units: dict[str, Forms] = field(default_factory=dict)  # behind a number only
    abbreviations: dict[str, str] = field(default_factory=dict)


def _signs(plus: str, equals: str, both: str, at: str, degrees: str) -> dict[str, str]:
    return {"+": plus, "=": equals, "&": both, "@": at, "°": degrees}


def _units(*words: str, signs: str = "km m cm kg g l °C") -> dict[str, Forms]:
    """Each sign's word in its forms, "kilometre kilometres"; an underscore stands for a blank."""
    forms = (tuple(form.replace("_", " ") for form in word.split()) for word in words)
    return dict(zip(signs.split(), forms, strict=True))


def _months(names: str) -> Forms:
    return tuple(names.split())


SPEECH: dict[str, Speech] = {
    "en": Speech(
        point="point",
        minus="minus",
        percent=("percent",),
        signs={**_signs("plus", "equals", "and", "at", "degrees"), "#": "number"},
        months=_months(
            "January February March April May June July August September October November December"
        ),
        decimal=".",
        groups=",",
        order="mdy",
        date="{month} {day}, {year}",
        over="over",
        money={"$": ("dollar", "dollars"), "£": ("pound", "pounds"), "€": ("euro", "euros"), "¥": ("yen",)},
        units={
            **_units(
                "kilometer kilometers", "meter meters", "centimeter centimeters", "kilogram kilograms", "gram grams",
                "liter liters", "degree_Celsius degrees_Celsius",
            ),
            "mph": ("mile per hour", "miles per hour"),
            "km/h": ("kilometer per hour", "kilometers per hour"), "ft": ("foot", "feet"), "ft.": ("foot", "feet"),
            "lb": ("pound", "pounds"), "ml": ("milliliter", "milliliters"),
        },
        abbreviations={
            "mr.": "mister", "mrs.": "missus", "ms.": "miz", "dr.": "doctor", "st.": "saint", "co.": "company",
            "jr.": "junior", "sr.": "senior", "maj.": "major", "gen.": "general", "rev.": "reverend",
            "lt.": "lieutenant", "hon.": "honorable", "sgt.": "sergeant", "capt.": "captain", "esq.": "esquire",
            "ltd.": "limited", "col.": "colonel", "ft.": "fort", "vs.": "versus", "etc.": "et cetera",
            "mt.": "mount",
            "jan.": "January", "feb.": "February", "aug.": "August", "sept.": "September", "oct.": "October",
            "nov.": "November", "dec.": "December", "prof.": "professor", "e.g.": "for example",
            "i.e.": "that is", "a.m.": "A.M", "p.m.": "P.M",
            "approx.": "approximately", "ave.": "avenue", "dept.": "department", "inc.": "incorporated",
        },
    ),
    "fa": Speech(
        point="ممیز",
        minus="منفی",
        percent=("درصد",),
        signs={**_signs("به علاوهٔ", "مساوی", "و", "اَت", "درجه"), "#": "شمارهٔ"},
        months=_months("ژانویهٔ فوریهٔ مارس آوریل مه ژوئن ژوئیهٔ اوت سپتامبر اکتبر نوامبر دسامبر"),
        decimal=".",
        groups=",",
        order="ymd",
        date="{day}ِ {month} {year}",
        time="{hour} و {minute} دقیقه",
        over="تقسیم بر",
        money={"$": ("دلار",), "€": ("یورو",), "£": ("پوند",), "﷼": ("ریال",), "¥": ("یِن",)},
        units=_units("کیلومتر", "متر", "سانتی‌متر", "کیلوگرم", "گرم", "لیتر", "درجهٔ_سانتی‌گراد"),
        abbreviations={
            "ق.م.": "قبل از میلاد", "ب.م.": "بعد از میلاد", "ه.ق.": "هجری قمری", "ه.ش.": "هجری شمسی", "ص.": "صفحهٔ",
            "ج.": "جلد", "ر.ک.": "رجوع کنید به", "ق.م": "قبل از میلاد", "ه.ق": "هجری قمری", "ه.ش": "هجری شمسی",
        },
    ),
    "es": Speech(
        point="coma",
        minus="menos",
        percent=("por ciento",),
        signs=_signs("más", "igual a", "y", "arroba", "grados"),
        months=_months(
            "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
        ),
        date="{day} de {month} de {year}",
        time="{hour} y {minute}",
        over="sobre",
        money={"$": ("dólar", "dólares"), "€": ("euro", "euros"), "£": ("libra", "libras"), "¥": ("yen", "yenes")},
        units=_units(
            "kilómetro kilómetros", "metro metros", "centímetro centímetros", "kilogramo kilogramos", "gramo gramos",
            "litro litros", "grado_Celsius grados_Celsius",
        ),
        abbreviations={
            "sr.": "señor", "sra.": "señora", "srta.": "señorita", "dr.": "doctor", "dra.": "doctora", "d.": "don",
            "ud.": "usted", "uds.": "ustedes", "p.ej.": "por ejemplo", "etc.": "etcétera", "avda.": "avenida",
            "av.": "avenida", "n.º": "número", "núm.": "número", "pág.": "página", "prof.": "profesor", "s.": "siglo",
            "ee.uu.": "Estados Unidos", "a.c.": "antes de Cristo", "d.c.": "después de Cristo", "aprox.":
            "aproximadamente",
        },
    ),
    "fr": Speech(
        point="virgule",
        minus="moins",
        percent=("pour cent",),
        signs=_signs("plus", "égale", "et", "arobase", "degrés"),
        months=_months("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
        groups=" ",
        time="{hour} heures {minute}",
        full_hour="{hour} heures",
        over="sur",
        money={"€": ("euro", "euros"), "$": ("dollar", "dollars"), "£": ("livre", "livres"), "¥": ("yen", "yens")},
        units=_units(
            "kilomètre kilomètres", "mètre mètres", "centimètre centimètres", "kilogramme kilogrammes",
            "gramme grammes", "litre litres", "degré_Celsius degrés_Celsius",
        ),
        abbreviations={
            "m.": "monsieur", "mm.": "messieurs", "mme": "madame", "mlle": "mademoiselle", "dr": "docteur",
            "p.ex.": "par exemple", "etc.": "et cetera", "bd": "boulevard", "av.": "avenue",
            "c.-à-d.": "c'est-à-dire", "env.": "environ", "n°": "numéro", "st": "saint", "ste": "sainte",
            "av.j.-c.": "avant Jésus-Christ",
        },
    ),
    "de": Speech(
        point="Komma",
        minus="minus",
        percent=("Prozent",),
        signs=_signs("plus", "gleich", "und", "at", "Grad"),
        months=_months("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
        time="{hour} Uhr {minute}",
        full_hour="{hour} Uhr",
        hour_word="Uhr",
        over="durch",
        money={"€": ("Euro",), "$": ("Dollar",), "£": ("Pfund",), "¥": ("Yen",), "CHF": ("Franken",)},
        units=_units("Kilometer", "Meter", "Zentimeter", "Kilogramm", "Gramm", "Liter", "Grad_Celsius"),
        abbreviations={
            "z.b.": "zum Beispiel", "d.h.": "das heißt", "u.a.": "unter anderem", "usw.": "und so weiter",
            "bzw.": "beziehungsweise", "ca.": "circa", "dr.": "Doktor", "prof.": "Professor", "hr.": "Herr",
            "fr.": "Frau", "nr.": "Nummer", "str.": "Straße", "evtl.": "eventuell", "ggf.": "gegebenenfalls",
            "inkl.": "inklusive", "mio.": "Millionen", "mrd.": "Milliarden", "st.": "Sankt", "vgl.": "vergleiche",
            "s.": "Seite", "v.chr.": "vor Christus", "n.chr.": "nach Christus",
        },
    ),
    "it": Speech(
        point="virgola",
        minus="meno",
        percent=("per cento",),
        signs=_signs("più", "uguale a", "e", "chiocciola", "gradi"),
        months=_months(
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"
        ),
        time="{hour} e {minute}",
        over="su",
        money={"€": ("euro",), "$": ("dollaro", "dollari"), "£": ("sterlina", "sterline"), "¥": ("yen",)},
        units=_units(
            "chilometro chilometri", "metro metri", "centimetro centimetri", "chilogrammo chilogrammi", "grammo grammi",
            "litro litri", "grado_Celsius gradi_Celsius",
        ),
        abbreviations={
            "sig.": "signor", "sig.ra": "signora", "sigg.": "signori", "dott.": "dottor", "dott.ssa": "dottoressa",
            "prof.": "professor", "prof.ssa": "professoressa", "ing.": "ingegner", "avv.": "avvocato",
            "ad es.": "ad esempio", "ecc.": "eccetera", "p.zza": "piazza", "n.": "numero",
            "pag.": "pagina", "a.c.": "avanti Cristo", "d.c.": "dopo Cristo", "c.so": "corso",
        },
    ),
    "pt": Speech(
        point="vírgula",
        minus="menos",
        percent=("por cento",),
        signs=_signs("mais", "igual a", "e", "arroba", "graus"),
        months=_months("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"),
        date="{day} de {month} de {year}",
        time="{hour} e {minute}",
        over="sobre",
        money={
            "US$": ("dólar", "dólares"), "R$": ("real", "reais"), "$": ("dólar", "dólares"), "€": ("euro", "euros"),
            "£": ("libra", "libras"),
        },
        units=_units(
            "quilômetro quilômetros", "metro metros", "centímetro centímetros", "quilograma quilogramas",
            "grama gramas", "litro litros", "grau_Celsius graus_Celsius",
        ),
        abbreviations={
            "sr.": "senhor", "sra.": "senhora", "srta.": "senhorita", "dr.": "doutor", "dra.": "doutora",
            "d.": "dom", "prof.": "professor", "profa.": "professora", "p.ex.": "por exemplo", "etc.": "et cetera",
            "av.": "avenida", "r.": "rua", "nº": "número", "n.º": "número", "pág.": "página", "a.c.":
            "antes de Cristo", "d.c.": "depois de Cristo", "exmo.": "excelentíssimo",
        },
    ),
    "pl": Speech(
        point="przecinek",
        minus="minus",
        percent=("procent", "procent", "procent"),
        signs=_signs("plus", "równa się", "i", "małpa", "stopni"),
        months=_months(
            "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia"
        ),
        groups=" ",
        over="przez",
        money={
            "zł": ("złoty", "złote", "złotych"), "$": ("dolar", "dolary", "dolarów"), "€": ("euro",),
            "£": ("funt", "funty", "funtów"),
        },
        units={
            **_units(
                "kilometr kilometry kilometrów", "metr metry metrów", "centymetr centymetry centymetrów",
                "kilogram kilogramy kilogramów", "gram gramy gramów", "litr litry litrów",
                "stopień_Celsjusza stopnie_Celsjusza stopni_Celsjusza",
            ),
            "tys.": ("tysiąc", "tysiące", "tysięcy"), "mln": ("milion", "miliony", "milionów"),
            "mld": ("miliard", "miliardy", "miliardów"),
        },
        abbreviations={
            "np.": "na przykład", "itd.": "i tak dalej", "itp.": "i tym podobne", "tzn.": "to znaczy", "tj.": "to jest",
            "m.in.": "między innymi", "dr": "doktor", "prof.": "profesor", "ul.": "ulicy", "godz.": "godzinie",
            "r.": "roku", "wg": "według", "tzw.":
            "tak zwany", "ok.": "około", "nr": "numer", "św.": "święty", "inż.": "inżynier", "m.": "mieszkania",
        },
    ),
    "tr": Speech(
        point="virgül",
        minus="eksi",
        percent=("yüzde",),
        percent_first=True,
        signs=_signs("artı", "eşittir", "ve", "et işareti", "derece"),
        months=_months("Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık"),
        over="bölü",
        money={"₺": ("lira",), "TL": ("lira",), "$": ("dolar",), "€": ("avro",), "£": ("sterlin",)},
        units=_units("kilometre", "metre", "santimetre", "kilogram", "gram", "litre", "santigrat_derece"),
        abbreviations={
            "dr.": "doktor", "prof.": "profesör", "doç.": "doçent", "vb.": "ve benzeri", "vs.": "vesaire",
            "örn.": "örneğin", "cad.": "caddesi", "sok.": "sokak", "mah.": "mahallesi", "no.": "numara",
            "yy.": "yüzyıl", "bkz.": "bakınız", "m.ö.": "milattan önce", "m.s.": "milattan sonra",
        },
    ),
    "ru": Speech(
        point="запятая",
        minus="минус",
        percent=("процент", "процента", "процентов"),
        signs=_signs("плюс", "равно", "и", "собака", "градусов"),
        months=_months(
            "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
        ),
        groups=" ",
        over="на",
        money={
            "₽": ("рубль", "рубля", "рублей"), "$": ("доллар", "доллара", "долларов"), "€": ("евро",),
            "£": ("фунт", "фунта", "фунтов"), "руб.": ("рубль", "рубля", "рублей"),
        },
        units={
            **_units(
                "километр километра километров", "метр метра метров", "сантиметр сантиметра сантиметров",
                "килограмм килограмма килограммов", "грамм грамма граммов", "литр литра литров",
                "градус_Цельсия градуса_Цельсия градусов_Цельсия", signs="км м см кг г л °C",
            ),
            "тыс.": ("тысяча", "тысячи", "тысяч"), "млн": ("миллион", "миллиона", "миллионов"),
            "млрд": ("миллиард", "миллиарда", "миллиардов"),
            "ч.": ("час", "часа", "часов"), "мин.": ("минута", "минуты", "минут"), "г.": ("грамм", "грамма", "граммов"),
            "мл": ("миллилитр", "миллилитра", "миллилитров"), "мм": ("миллиметр", "миллиметра", "миллиметров"),
        },
        abbreviations={
            "т.е.": "то есть", "и т.д.": "и так далее", "и т.п.": "и тому подобное", "т.к.": "так как",
            "напр.": "например", "др.": "другие", "г.": "года", "гг.": "годов", "в.": "века", "ул.": "улице",
            "д.": "дом", "им.": "имени", "руб.": "рублей",
            "см.": "смотри", "стр.": "страница", "проф.": "профессор", "акад.": "академик",
            "до н.э.": "до нашей эры", "н.э.": "нашей эры", "т.н.": "так называемый", "№": "номер",
        },
    ),
    "nl": Speech(
        point="komma",
        minus="min",
        percent=("procent",),
        signs=_signs("plus", "is", "en", "apenstaartje", "graden"),
        months=_months("januari februari maart april mei juni juli augustus september oktober november december"),
        time="{hour} uur {minute}",
        full_hour="{hour} uur",
        hour_word="uur",
        over="gedeeld door",
        money={"€": ("euro",), "$": ("dollar",), "£": ("pond",), "¥": ("yen",)},
        units=_units("kilometer", "meter", "centimeter", "kilogram", "gram", "liter", "graden_Celsius"),
        abbreviations={
            "bijv.": "bijvoorbeeld", "bv.": "bijvoorbeeld", "enz.": "enzovoort", "d.w.z.": "dat wil zeggen",
            "m.a.w.": "met andere woorden", "o.a.": "onder andere", "dr.": "dokter", "prof.": "professor",
            "dhr.": "de heer", "mevr.": "mevrouw", "mr.": "meester", "nr.": "nummer", "ca.": "circa", "blz.":
            "bladzijde", "i.p.v.": "in plaats van", "t.o.v.": "ten opzichte van", "v.chr.": "voor Christus",
            "n.chr.": "na Christus", "st.": "sint",
        },
    ),
    "cs": Speech(
        point="celá",
        minus="minus",
        percent=("procento", "procenta", "procent"),
        signs=_signs("plus", "rovná se", "a", "zavináč", "stupňů"),
        months=_months("ledna února března dubna května června července srpna září října listopadu prosince"),
        groups=" ",
        over="lomeno",
        money={
            "Kč": ("koruna", "koruny", "korun"), "$": ("dolar", "dolary", "dolarů"), "€": ("euro", "eura", "eur"),
            "£": ("libra", "libry", "liber"),
        },
        units={
            **_units(
                "kilometr kilometry kilometrů", "metr metry metrů", "centimetr centimetry centimetrů",
                "kilogram kilogramy kilogramů", "gram gramy gramů", "litr litry litrů",
                "stupeň_Celsia stupně_Celsia stupňů_Celsia",
            ),
            "tis.": ("tisíc", "tisíce", "tisíc"), "mil.": ("milion", "miliony", "milionů"),
            "mld.": ("miliarda", "miliardy", "miliard"),
        },
        abbreviations={
            "např.": "například", "atd.": "a tak dále", "apod.": "a podobně", "tj.": "to jest", "tzv.": "takzvaný",
            "dr.": "doktor", "prof.": "profesor", "ing.": "inženýr", "mudr.": "doktor",
            "ul.": "ulice", "č.": "číslo", "str.": "strana", "cca": "cirka",
            "sv.": "svatý", "př.n.l.": "před naším letopočtem", "n.l.": "našeho letopočtu",
        },
    ),
    "ar": Speech(
        point="فاصلة",
        minus="ناقص",
        percent=("بالمئة",),
        signs=_signs("زائد", "يساوي", "و", "آت", "درجة"),
        months=_months("يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر"),
        decimal=".",
        groups=",",
        time="{hour} و {minute} دقيقة",
        over="على",
        money={"$": ("دولار",), "€": ("يورو",), "£": ("جنيه",), "ر.س": ("ريال سعودي",), "﷼": ("ريال",)},
        units={
            "كم": ("كيلومتر",), "م": ("متر",), "سم": ("سنتيمتر",), "كغ": ("كيلوغرام",), "غ": ("غرام",),
            "ل": ("لتر",), "°C": ("درجة مئوية",), "°م": ("درجة مئوية",),
        },
        abbreviations={
            "د.": "الدكتور", "أ.د.": "الأستاذ الدكتور", "ص.": "صفحة", "ق.م": "قبل الميلاد", "إلخ.": "إلى آخره",
        },
    ),
    "zh": Speech(
        point="点",
        minus="负",
        percent=("百分之",),
        percent_first=True,
        signs=_signs("加", "等于", "和", "艾特", "度"),
        decimal=".",
        groups=",",
        order="ymd",
        date="{year}年{month}月{day}日",
        time="{hour}点{minute}分",
        full_hour="{hour}点",
        fraction="{below}分之{above}",
        money={"¥": ("元",), "￥": ("元",), "$": ("美元",), "€": ("欧元",), "£": ("英镑",)},
        units={
            **_units("公里", "米", "厘米", "公斤", "克", "升", "摄氏度"), "℃": ("摄氏度",),
        },
    ),
    "ja": Speech(
        point="点",
        minus="マイナス",
        percent=("パーセント",),
        signs=_signs("プラス", "イコール", "アンド", "アット", "度"),
        decimal=".",
        groups=",",
        order="ymd",
        date="{year}年{month}月{day}日",
        time="{hour}時{minute}分",
        full_hour="{hour}時",
        fraction="{below}分の{above}",
        money={"¥": ("円",), "￥": ("円",), "$": ("ドル",), "€": ("ユーロ",), "£": ("ポンド",)},
        units={
            **_units("キロメートル", "メートル", "センチメートル", "キログラム", "グラム", "リットル", "度"),
            "℃": ("度",),
        },
    ),
    "hu": Speech(
        point="egész",
        minus="mínusz",
        percent=("százalék",),
        signs=_signs("plusz", "egyenlő", "és", "kukac", "fok"),
        months=_months(
            "január február március április május június július augusztus szeptember október november december"
        ),
        groups=" ",
        order="ymd",
        date="{year} {month} {day}",
        time="{hour} óra {minute}",
        full_hour="{hour} óra",
        over="per",
        money={"Ft": ("forint",), "€": ("euró",), "$": ("dollár",), "£": ("font",)},
        units={**_units("kilométer", "méter", "centiméter", "kilogramm", "gramm", "liter", "Celsius-fok"),
               "dkg": ("dekagramm",), "dl": ("deciliter",)},
        abbreviations={
            "pl.": "például", "stb.": "és a többi", "kb.": "körülbelül", "dr.": "doktor", "prof.": "professzor",
            "ill.": "illetve", "ún.": "úgynevezett", "u.": "utca", "sz.": "szám", "old.": "oldal",
            "i.e.": "időszámításunk előtt", "kft.": "káefté", "ti.": "tudniillik",
        },
    ),
    "ko": Speech(
        point="점",
        minus="영하",
        percent=("퍼센트",),
        signs=_signs("더하기", "은", "그리고", "골뱅이", "도"),
        decimal=".",
        groups=",",
        order="ymd",
        date="{year}년 {month}월 {day}일",
        time="{hour}시 {minute}분",
        full_hour="{hour}시",
        fraction="{below}분의 {above}",
        money={"₩": ("원",), "$": ("달러",), "€": ("유로",), "£": ("파운드",), "¥": ("엔",)},
        units={**_units("킬로미터", "미터", "센티미터", "킬로그램", "그램", "리터", "도"), "℃": ("도",)},
    ),
    "hi": Speech(
        point="दशमलव",
        minus="माइनस",
        percent=("प्रतिशत",),
        signs=_signs("प्लस", "बराबर", "और", "ऐट", "डिग्री"),
        months=_months("जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर"),
        decimal=".",
        groups=",",
        over="बटा",
        money={"₹": ("रुपया", "रुपये"), "$": ("डॉलर",), "€": ("यूरो",), "£": ("पाउंड",)},
        units={**_units("किलोमीटर", "मीटर", "सेंटीमीटर", "किलोग्राम", "ग्राम", "लीटर", "डिग्री_सेल्सियस"),
               "किमी": ("किलोमीटर",)},
        abbreviations={
            "डॉ.": "डॉक्टर", "प्रो.": "प्रोफ़ेसर", "श्री.": "श्री", "रु.": "रुपये", "कि.मी.": "किलोमीटर", "पं.": "पंडित",
        },
    ),
}  # fmt: skip
