/** Rejections in other languages: what counts against the recipient, and what must not. */
import t from 'tap'
import { classifyReply } from '../../src/mail/classify/classify.js'
import type { Subtype } from '../../src/mail/classify/classify-subtypes.js'
import { assertLinear } from '../support/count-steps.js'

function subtypeOf(text: string, code = 550): Subtype {
  return classifyReply({ code, text }, 'rcpt').subtype
}

const UNKNOWN = [
  "L'utilisateur demandé n'a pas été trouvé",
  'Usuario desconocido',
  '<ann@example.net>: El buzón no existe',
  'La dirección de correo ann@example.net es inválida',
  'no existe dicha persona',
  'Utilisateur inconnu !',
  "Cette adresse n'existe pas",
  'Adresse d au moins un destinataire invalide',
  'Boîte aux lettres inexistante',
  'Benutzer nicht bekannt',
  'Empfänger unbekannt',
  'Empfaenger unbekannt',
  'Unbekannter Empfänger',
  'Das Postfach existiert nicht',
  'Destinatario sconosciuto',
  'destin. Sconosciuto',
  'Indirizzo inesistente',
  'La casella non esiste',
  'Usuário desconhecido',
  'Conta inexistente',
  'A caixa postal não existe',
  'Gebruiker onbekend',
  'Onbekende gebruiker',
  'Het e-mailadres bestaat niet',
  'Nie ma takiego konta',
  'Użytkownik nie istnieje',
  'Nieznany użytkownik',
  'Пользователь не найден',
  'Нет такого пользователя',
  'Почтовый ящик не существует',
  'Неизвестный получатель',
  '宛先のメールアドレスが存在しません',
  'ユーザーが見つかりません',
  '该用户不存在',
  '收件人不存在',
  '對方用戶不存在',
  '查无此人',
  '使用者不存在',
  'Kullanıcı bulunamadı',
  'KULLANICI BULUNAMADI',
  'Bilinmeyen kullanıcı',
  'Böyle bir kullanıcı yok',
  'Okänd mottagare',
  'Användaren finns inte',
]

const FULL = [
  'Cuota de disco excedida',
  'Der Empfänger hat die maximale Postfachgröße überschritten',
  'Destinatario desconocido o mailbox lleno',
  'El buzón del destinatario está lleno',
  'La cuenta ha superado su cuota',
  'Boîte aux lettres pleine',
  'La boîte du destinataire a dépassé son quota',
  'Postfach ist voll',
  'Benutzer hat das Speichervolumen ueberschritten.',
  'Benutzer hat zuviele Mails auf dem Server.',
  'Speicherplatz des Kontos ueberschritten',
  'La casella del destinatario è piena',
  'Caixa postal cheia',
  'A caixa de entrada do destinatário está sem espaço de armazenamento',
  'Mailbox vol',
  'Het postvak van de ontvanger is vol',
  'Skrzynka odbiorcy jest pełna',
  'Skrzynka przepełniona',
  'Почтовый ящик переполнен',
  'Ящик получателя переполнен',
  'メールボックスがいっぱいです',
  'メールボックスの容量超過',
  '收件人空间不足',
  '邮箱已满',
  '信箱已滿',
  'Posta kutusu dolu',
  'Brevlådan är full',
]

const DISABLED = [
  'El usuario esta en estado: inactivo',
  'Esta casilla ha expirado por falta de uso',
  'Le compte du destinataire est bloqué',
  'Destinataire inconnu ou boite aux lettres desactivee',
  'Adressat unbekannt oder Mailbox deaktiviert',
  'Das Postfach wurde gesperrt',
  "Questo indirizzo e' bloccato per inutilizzo",
  'Destinatario sconosciuto o mailbox disatttivata',
  'Conta desativada',
  'De mailbox is uitgeschakeld',
  'Podane konto jest zablokowane administracyjnie lub nieaktywne',
  'Почтовый ящик заблокирован',
  'アカウントは停止されています',
  '帐号已被禁用',
  '帳號已停用',
  'Hesap devre dışı',
  'Kontot är avstängt',
]

/** Refused for what we are or send: never the recipient's fault. */
const OURS = [
  'Su cuenta está suspendida',
  'Votre compte est suspendu',
  'Ihr Konto ist gesperrt',
  'Ваш аккаунт заблокирован',
  '您的账号已被锁定',
  'Hesabınız askıya alındı',
  'Su IP ha sido bloqueada por mala reputación, usuario desconocido',
  'Mensaje rechazado por la política del destinatario',
  'El remitente no existe',
  'La dirección del remitente es desconocida',
  'La dirección IP está en una lista negra',
  'Cuota de envío de la cuenta excedida',
  'El destinatario ha bloqueado su mensaje',
  'Votre adresse IP est bloquée, mauvaise réputation',
  'Expéditeur inconnu',
  "L'adresse de l'expéditeur n'existe pas",
  'Courrier indésirable refusé par le destinataire',
  'Absender unbekannt',
  'Die Adresse des Absenders existiert nicht',
  'Ihre IP-Adresse ist gesperrt',
  'Vom Empfänger wegen schlechter Reputation abgelehnt',
  'Mittente sconosciuto',
  "L'indirizzo IP è bloccato per cattiva reputazione",
  'Remetente desconhecido',
  'Endereço IP bloqueado por má reputação',
  'Afzender onbekend',
  'Het IP-adres is geblokkeerd',
  'Nadawca nieznany',
  'Adres IP jest zablokowany',
  'Wiadomosc zostala odrzucona przez system antyspamowy odbiorcy',
  'Отправитель не найден',
  'Адрес отправителя не существует',
  'IP-адрес заблокирован: низкая репутация',
  '送信者のアドレスが存在しません',
  '送信元IPアドレスがブロックされています',
  '发件人地址不存在',
  '您的IP地址信誉过低,已被禁用',
  '寄件者帳號不存在',
  'Gönderen adresi bulunamadı',
  'IP adresiniz kara listede',
  'Avsändaradressen finns inte',
  'IP-adressen är spärrad',
]

for (const [what, subtype, lines] of [
  ['an unknown recipient', 'no_such_mailbox', UNKNOWN],
  ['a full mailbox', 'mailbox_full', FULL],
  ['a closed mailbox', 'mailbox_disabled', DISABLED],
] as const)
  t.test(`${what} is recognized in other languages`, async t => {
    for (const line of lines) t.equal(subtypeOf(line), subtype, line)
  })

t.test('a full mailbox is never permanent, whatever the language and the code', async t => {
  for (const line of FULL)
    t.match(
      classifyReply({ code: 552, text: line }, 'rcpt'),
      { permanence: 'transient', scope: 'address' },
      line,
    )
})

t.test('a refusal of our host, sender or content counts against no recipient in any language', async t => {
  for (const line of OURS) t.not(classifyReply({ code: 550, text: line }, 'rcpt').cause, 'recipient', line)
})

t.test('a bad reputation is recognized in other languages', async t => {
  for (const line of [
    'Su IP ha sido bloqueada por mala reputación',
    'Votre adresse IP est bloquée',
    'Ihre IP-Adresse ist gesperrt',
    'Endereço IP bloqueado',
    'IP-адрес заблокирован: низкая репутация',
    '您的IP地址信誉过低',
    'IP adresiniz kara listede',
  ])
    t.equal(classifyReply({ code: 554, text: line }).cause, 'reputation', line)
})

t.test('a mailbox closed for a while is not held against the recipient', async t => {
  for (const line of [
    'La cuenta está temporalmente deshabilitada',
    'Das Postfach ist vorübergehend gesperrt',
    'Le compte est temporairement suspendu',
    'Почтовый ящик временно заблокирован',
  ])
    t.equal(subtypeOf(line), 'mailbox_unavailable', line)
})

t.test('a domain that does not exist is not called an unknown mailbox', async t => {
  for (const line of ['El dominio del destinatario no existe', 'Le domaine du destinataire est inconnu'])
    t.not(subtypeOf(line), 'no_such_mailbox', line)
})

t.test('letters that a wrong charset destroyed are passed over, and encoded words are decoded', async t => {
  t.equal(subtypeOf('Empf\ufffdnger unbekannt'), 'no_such_mailbox')
  t.equal(subtypeOf('Bo?te aux lettres pleine'), 'mailbox_full')
  t.equal(
    subtypeOf('=?utf-8?B?0J/QvtC70YzQt9C+0LLQsNGC0LXQu9GMINC90LUg0L3QsNC50LTQtdC9?='),
    'no_such_mailbox',
  )
})

t.test('a mailbox that Exim found full until it gave up is full, not expired', async t => {
  t.match(classifyReply({ code: 0, text: 'mailbox is full: retry timeout exceeded' }), {
    subtype: 'mailbox_full',
    permanence: 'transient',
  })
  t.equal(classifyReply({ code: 0, text: 'retry timeout exceeded' }).subtype, 'expired')
})

t.test('hostile text in other languages is classified in linear time', async t => {
  for (const word of [
    'usuario ',
    'ip ',
    'benutzer speicherplatz ',
    'пользователь ',
    '用户',
    'posta kutusu ',
    '??',
    'ausgeschlossen',
  ])
    assertLinear(
      t,
      count => classifyReply({ code: 550, text: word.repeat(count) }),
      Math.floor(500 / word.length),
      word,
    )
})
