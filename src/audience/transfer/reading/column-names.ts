/**
 * Column names of spreadsheets in the larger languages, and the contact field each means.
 *
 * Compared without case, accents, spaces and punctuation (`foldedName`), so `Correo electrónico` is `correoelectronico` and `E-Mail` is
 * `email`. Names that mean different things in different languages are left out: such a column becomes an attribute, and `mapping` can
 * say otherwise. Pure.
 */
import { fold } from '../../../core/fold.js'

type Field = 'email' | 'first_name' | 'last_name' | 'name' | 'subscribed' | 'tags' | 'attributes'

/** As people write them; commas separate. */
const NAMES: Readonly<Record<Field, Readonly<Record<string, string>>>> = {
  email: {
    en: 'email, email address, mail, mail address, email id, contact email, primary email',
    fr: 'adresse email, adresse mail, adresse de messagerie, adresse électronique, courriel, adresse courriel, mél',
    es: 'correo, correo electrónico, dirección de correo, dirección de correo electrónico, dirección de email, dirección email, email de contacto',
    de: 'E-Mail-Adresse, Mailadresse, elektronische Adresse, Emailadresse',
    it: 'indirizzo email, indirizzo mail, indirizzo e-mail, indirizzo di posta elettronica, posta elettronica',
    pt: 'endereço de email, endereço de e-mail, endereço email, endereço eletrônico, endereço eletrónico, correio eletrônico, correio eletrónico',
    ca: 'correu, correu electrònic, adreça electrònica',
    nl: 'e-mailadres, mailadres, emailadres',
    pl: 'adres email, adres e-mail, adres mailowy, adres poczty elektronicznej, poczta elektroniczna',
    cs: 'e-mailová adresa, emailová adresa',
    hu: 'e-mail cím, email cím',
    ro: 'adresă de email, adresa de e-mail, adresa email',
    sv: 'e-postadress, epost, e-post, mejl, mejladress, mailadress',
    da: 'e-mailadresse, mailadresse',
    no: 'e-postadresse, epostadresse',
    fi: 'sähköposti, sähköpostiosoite',
    tr: 'e-posta, eposta, e-posta adresi, mail adresi, email adresi, elektronik posta',
    el: 'ηλεκτρονικό ταχυδρομείο, διεύθυνση email, διεύθυνση ηλεκτρονικού ταχυδρομείου',
    ru: 'почта, электронная почта, эл. почта, адрес электронной почты, адрес эл. почты, e-mail адрес, email адрес, электронный адрес, имейл, емейл, мейл',
    uk: 'пошта, електронна пошта, адреса електронної пошти, ел. пошта, електронна адреса',
    ja: 'メール, メールアドレス, Eメール, Eメールアドレス, 電子メール, 電子メールアドレス, eメール アドレス',
    zh: '邮箱, 电子邮箱, 电子邮件, 邮件, 邮件地址, 电子邮件地址, 邮箱地址, 电邮, 电邮地址, 郵箱, 電子郵箱, 電子郵件, 郵件, 郵件地址, 電子郵件地址, 電郵, 電郵地址, 電子信箱, 信箱',
    ko: '이메일, 이메일 주소, 메일, 메일 주소, 전자우편, 전자 메일',
    ar: 'البريد الإلكتروني, البريد الالكتروني, بريد إلكتروني, عنوان البريد الإلكتروني, الإيميل, ايميل',
    he: 'דואר אלקטרוני, דוא"ל, כתובת דוא"ל, אימייל, מייל, כתובת מייל',
    hi: 'ईमेल, ईमेल पता',
    id: 'alamat email, surel, alamat surel',
    vi: 'địa chỉ email, thư điện tử, hộp thư',
  },
  first_name: {
    en: 'first name, fname, given name, given names, forename, first',
    fr: 'prénom, prénoms',
    es: 'nombre de pila, primer nombre, nombres',
    de: 'Vorname, Vornamen, Rufname',
    it: 'nome di battesimo, primo nome',
    pt: 'primeiro nome, nome próprio',
    ca: 'nom de pila',
    nl: 'voornaam, voornamen, roepnaam',
    pl: 'imię, imiona, pierwsze imię',
    cs: 'křestní jméno',
    hu: 'keresztnév, utónév',
    ro: 'prenume, prenumele',
    sv: 'förnamn, tilltalsnamn',
    da: 'fornavn',
    fi: 'etunimi, etunimet',
    tr: 'ilk ad, ilk isim, ön ad',
    ja: '名, ファーストネーム',
    zh: '名',
    ar: 'الاسم الأول',
    he: 'שם פרטי',
    vi: 'tên',
    id: 'nama depan',
  },
  last_name: {
    en: 'last name, lname, surname, family name, last',
    fr: 'nom de famille, patronyme',
    es: 'apellido, apellidos, primer apellido',
    de: 'Nachname, Familienname, Zuname',
    it: 'cognome, cognomi',
    pt: 'sobrenome, último nome, nome de família',
    ca: 'cognom, cognoms',
    nl: 'achternaam, familienaam',
    pl: 'nazwisko',
    cs: 'příjmení',
    hu: 'vezetéknév, családnév',
    ro: 'nume de familie',
    sv: 'efternamn',
    no: 'etternavn',
    da: 'efternavn',
    fi: 'sukunimi',
    tr: 'soyad, soyadı, soyisim, soy isim',
    el: 'επώνυμο, επίθετο',
    ru: 'фамилия',
    uk: 'прізвище',
    ja: '姓, 苗字, ラストネーム',
    zh: '姓, 姓氏',
    ko: '성',
    ar: 'اسم العائلة, الاسم الأخير',
    he: 'שם משפחה',
    vi: 'họ',
    id: 'nama belakang',
  },
  name: {
    en: 'full name, whole name, contact name, display name',
    fr: 'nom complet, prénom et nom, prénom nom',
    es: 'nombre completo, nombre y apellido, nombre y apellidos, nombre del contacto',
    de: 'vollständiger Name, ganzer Name, Vor- und Nachname, Vorname Nachname, Vorname und Nachname',
    it: 'nome completo, nome e cognome',
    pt: 'nome completo, nome e sobrenome',
    nl: 'volledige naam, voor- en achternaam',
    pl: 'imię i nazwisko, pełne imię i nazwisko',
    cs: 'jméno a příjmení, celé jméno',
    ro: 'nume complet',
    sv: 'fullständigt namn, för- och efternamn, hela namnet',
    da: 'fulde navn, fuldt navn',
    fi: 'koko nimi',
    tr: 'ad soyad, adı soyadı, ad soyadı, isim soyisim, tam ad',
    el: 'ονοματεπώνυμο',
    ru: 'полное имя, имя и фамилия, имя фамилия',
    uk: "повне ім'я",
    ja: '氏名, お名前, 姓名',
    zh: '姓名, 全名',
    ko: '이름, 성명',
    ar: 'الاسم الكامل',
    he: 'שם מלא',
    id: 'nama lengkap',
  },
  subscribed: {
    en: 'subscribed, is subscribed, opt in, opted in, optin',
    fr: 'abonné, abonnée, est abonné',
    es: 'suscrito, suscrita, está suscrito',
    de: 'abonniert',
    it: 'iscritto, iscritta',
    pt: 'subscrito',
    nl: 'geabonneerd',
    pl: 'zapisany, subskrybowany',
    sv: 'prenumererar, prenumerant',
    tr: 'abone, abone mi',
    ru: 'подписан',
    uk: 'підписаний',
    ja: '購読, 購読中, 配信希望',
    zh: '已订阅, 订阅, 已訂閱, 訂閱, 是否订阅, 是否訂閱',
    ko: '구독, 구독 여부',
  },
  tags: {
    en: 'tags, tag',
    fr: 'étiquettes, étiquette, mots-clés',
    es: 'etiquetas, etiqueta',
    de: 'Schlagwörter, Schlagworte, Etiketten',
    it: 'etichette, etichetta',
    pt: 'marcadores',
    nl: 'trefwoorden',
    pl: 'etykiety, tagi, znaczniki',
    sv: 'etiketter, taggar',
    tr: 'etiketler, etiket',
    ru: 'теги, тэги, метки',
    uk: 'теги, мітки',
    ja: 'タグ',
    zh: '标签, 標籤',
    ko: '태그',
  },
  attributes: { en: 'attributes' },
}

/** A word for "name" that is the surname beside a column of first names (French `Prénom, Nom`), and an attribute if alone. */
const NAME_OR_LAST = 'name, nom, naam, namn, navn, nume, nimi'
/** A word for "name" that is the first name beside a column of surnames (Spanish `Nombre, Apellido`), and the whole name if alone. */
const NAME_OR_FIRST = "nombre, nome, jméno, ad, adı, isim, имя, ім'я, όνομα, 名前, nama, ime, שם, الاسم"

function foldedNames(text: string): string[] {
  return text.split(',').map(foldedName)
}

const KNOWN: ReadonlyMap<string, Field> = new Map(
  Object.entries(NAMES).flatMap(([field, languages]) =>
    Object.values(languages)
      .flatMap(foldedNames)
      .map((name): [string, Field] => [name, field as Field]),
  ),
)

const [MAY_BE_LAST, MAY_BE_FIRST] = [new Set(foldedNames(NAME_OR_LAST)), new Set(foldedNames(NAME_OR_FIRST))]

/** A column name reduced to letters and digits, without case and accents. */
export function foldedName(name: string): string {
  return fold(name).replace(/[^\p{L}\p{N}]/gu, '')
}

/** Fields taken by the other columns of a file. */
export interface Beside {
  readonly hasFirst: boolean
  readonly hasLast: boolean
}

/** @returns the field that the column's own name means, without looking at others */
export function knownField(name: string): Field | undefined {
  return KNOWN.get(foldedName(name))
}

/** Reads names that mean a part of the name or all of it, depending on the other columns. @returns undefined if it is no such name */
export function nameField(name: string, { hasFirst, hasLast }: Beside): Field | undefined {
  const folded = foldedName(name)
  const mayBeLast = MAY_BE_LAST.has(folded)
  if (!mayBeLast && !MAY_BE_FIRST.has(folded)) return undefined
  if (hasFirst) return mayBeLast && !hasLast ? 'last_name' : undefined
  if (hasLast) return 'first_name'
  return mayBeLast ? undefined : 'name'
}
