/** Which column of a spreadsheet holds what, by its name in the language of whoever made it. */
import t from 'tap'
import { columnFor, readHeading } from '../../../src/audience/transfer/reading/columns.js'
import { columnsToRead, readRow } from '../../../src/audience/transfer/reading/read-row.js'

function fieldsOf(names: readonly string[], mapping: Record<string, string | null> = {}) {
  return readHeading(names, mapping).columns.map(({ field }) => field)
}

const ADDRESSES = [
  ...['Adresse e-mail', 'Adresse courriel', 'ADRESSE DE MESSAGERIE', 'Adresse électronique'],
  ...['Correo electrónico', 'Correo Electronico', 'Dirección de correo electrónico', 'correo'],
  ...['E-Mail-Adresse', 'Indirizzo e-mail', 'Endereço de e-mail', 'Correio eletrónico', 'E-mailadres'],
  ...[
    'Adres e-mail',
    'E-postadress',
    'E-post',
    'Sähköposti',
    'E-posta',
    'E-posta Adresi',
    'E-mailová adresa',
  ],
  ...['Электронная почта', 'Эл. почта', 'Адрес электронной почты', 'Електронна пошта'],
  ...[
    'メールアドレス',
    'Eメール',
    'メール アドレス',
    '电子邮件',
    '电子邮箱',
    '邮箱',
    '電子郵件',
    '이메일',
    '이메일 주소',
  ],
  ...['email_address', 'E_MAIL', 'e\u00a0mail', 'البريد الإلكتروني', 'כתובת מייל', 'Địa chỉ email'],
]

t.test('the column of addresses is found by its name in the larger languages', t => {
  for (const name of ADDRESSES) t.same(fieldsOf(['Id', name]), [null, 'email'], name)
  t.end()
})

t.test('columns of first and last names are found by their names in the larger languages', t => {
  const pairs = [
    ...[
      ['Prénom', 'Nom de famille'],
      ['PRENOM', 'NOM'],
      ['Prénom', 'Nom'],
      ['Nombre', 'Apellidos'],
    ],
    ...[
      ['Vorname', 'Name'],
      ['Vorname', 'Nachname'],
      ['Nome', 'Cognome'],
      ['Nome', 'Sobrenome'],
    ],
    ...[
      ['Voornaam', 'Achternaam'],
      ['Imię', 'Nazwisko'],
      ['Имя', 'Фамилия'],
      ['Ad', 'Soyad'],
    ],
    ...[
      ['Adı', 'Soyadı'],
      ['Förnamn', 'Efternamn'],
      ['名', '姓'],
      ['First_Name', 'last-name'],
    ],
  ]
  for (const [first = '', last = ''] of pairs) {
    t.same(fieldsOf(['email', first, last]), ['email', 'first_name', 'last_name'], `${first}, ${last}`)
    t.same(fieldsOf(['email', last, first]), ['email', 'last_name', 'first_name'], `${last}, ${first}`)
  }
  t.end()
})

t.test('a column of whole names is split, and beside first and last names it stays an attribute', t => {
  for (const name of ['Nom complet', 'Nombre', 'Nome completo', 'Имя', 'Full name', '氏名'])
    t.same(fieldsOf(['email', name]), ['email', 'name'], name)
  t.same(fieldsOf(['email', 'First name', 'Last name', 'Nombre']).at(-1), 'attributes.Nombre')
  t.same(fieldsOf(['email', 'Name']).at(-1), 'attributes.Name', 'a name of what is not said')
  const read = (name: string) =>
    readRow(columnsToRead(readHeading(['email', 'Full name'], {}).columns), {
      line: 2,
      cells: ['a@x.example', name],
    })
  t.match(read('Ann van Lee'), { firstName: 'Ann', lastName: 'van Lee' })
  t.match(read('Ann'), { firstName: 'Ann', lastName: null })
  t.match(read('山田 太郎'), { firstName: '太郎', lastName: '山田' }, 'written with the family name first')
  t.match(read('김민수'), { firstName: '김민수', lastName: null })
  t.end()
})

t.test('two columns that both mean the address are refused, naming both and the mapping', t => {
  t.throws(() => fieldsOf(['E-mail', 'Correo electrónico', 'Plan']), {
    code: 'validation_error',
    path: 'file',
    message:
      'the columns "E-mail" and "Correo electrónico" both map to email; select one with mapping, such as ' +
      '{"Correo electrónico": null}',
  })
  t.same(fieldsOf(['E-mail', 'Courriel'], { Courriel: null }), ['email', null])
  t.same(fieldsOf(['E-mail', 'Courriel'], { Courriel: 'email' }), ['attributes.E-mail', 'email'])
  t.end()
})

t.test('an attribute whose name means a field is exported so that it comes back as an attribute', t => {
  for (const name of ['Nom', 'name', 'Prénom', 'メール', 'plan']) {
    const column = columnFor(name)
    t.same(fieldsOf(['email', column]).at(-1), `attributes.${name}`, name)
  }
  t.equal(columnFor('plan'), 'plan')
  t.end()
})
