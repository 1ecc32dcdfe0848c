/** Paths and parameters of MAIL and RCPT. */
import t from 'tap'
import { readMail, readRcpt, type ParameterRules } from '../../src/smtp/mail-command.js'
import { smtpService } from '../support/smtp/smtp-service.js'

const rules: ParameterRules = { isEsmtp: true, dsn: true, smtpUtf8: true, auth: true, messageSize: 1_000 }

t.test('all forms of paths are accepted', async t => {
  const local = 'l'.repeat(64)
  const cases: readonly (readonly [text: string, address: string])[] = [
    ['<>', ''],
    ['<ann@example.com>', 'ann@example.com'],
    [' <ann+tag@sub.Example.COM>', 'ann+tag@sub.Example.COM'],
    ['<"ann lee"@example.com>', '"ann lee"@example.com'],
    ['<"a>b\\"c"@example.com>', '"a>b\\"c"@example.com'],
    ['<ann@[192.0.2.1]>', 'ann@[192.0.2.1]'],
    ['<ann@[IPv6:2001:db8::1]>', 'ann@[IPv6:2001:db8::1]'],
    ['<@one.example,@two.example:ann@example.com>', 'ann@example.com'],
    ['<ann@host_name.example>', 'ann@host_name.example'],
    [`<${local}@example.com>`, `${local}@example.com`],
  ]
  for (const [text, address] of cases) t.match(readMail(text, rules), { address }, text)
})

t.test('malformed paths are 501', async t => {
  const label = 'd'.repeat(60)
  const cases = [
    '',
    'ann@example.com',
    '<ann@example.com',
    '<ann>',
    '<@example.com>',
    '<ann@>',
    '<.ann@example.com>',
    '<ann..lee@example.com>',
    '<ann.@example.com>',
    '<ann lee@example.com>',
    '<ann@exa mple.com>',
    '<ann@-example.com>',
    '<ann@example..com>',
    '<ann@example.com.>',
    '<ann@[300.1.1.1]>',
    '<ann@[IPv6:2001:db8::1%eth0]>',
    '<"ann@example.com>',
    '<"a"b@example.com>',
    '<@one.example:>',
    '<@one.example>',
    '<<ann@example.com>>',
    '<ann@example.com>SIZE=1',
    `<${'l'.repeat(65)}@example.com>`,
    `<ann@${`${label}.`.repeat(4)}${label}>`,
    `<"${'a'.repeat(300)}`,
    `<${'@a,'.repeat(80)}@b:ann@example.com>`,
  ]
  for (const text of cases) t.match(readMail(text, rules), /^501 5\.(1\.7|5\.4) /, text)
  t.match(readRcpt('<>', false, rules), /^501 5\.1\.3 /)
})

t.test('a refused path says in plain words what is wrong with it', async t => {
  const cases: [string, string][] = [
    ['<ann>', 'address has no @'],
    ['<ann@>', 'address has no valid domain'],
    ['<ann@-example.com>', 'address has no valid domain'],
    ['<"@example.com>', 'address has no closing bracket'],
    ['<ann..lee@example.com>', 'address has a dot at the beginning, at the end, or next to another dot'],
    ['<ann lee@example.com>', 'address contains spaces or control characters'],
    ['<ann@one@example.com>', 'address has more than one @'],
    ['<ann(lee@example.com>', 'address has the character ( before the @, where it is not allowed'],
    [`<${'l'.repeat(65)}@example.com>`, 'address has more than 64 octets before the @'],
    ['<@one.example>', 'address has an invalid source route'],
    [`<ann@${'d'.repeat(255)}>`, 'address is longer than 254 octets'],
  ]
  for (const [text, fault] of cases) {
    t.equal(readMail(text, rules), `501 5.1.7 Sender: ${fault}\r\n`)
    t.equal(readRcpt(text, false, rules), `501 5.1.3 Recipient: ${fault}\r\n`)
  }
})

t.test('postmaster needs no domain, as a recipient', async t => {
  t.same(readRcpt('<PostMaster>', false, rules), { address: 'PostMaster' })
  t.match(readMail('<postmaster>', rules), /^501 /)
})

t.test('MAIL parameters are parsed', async t => {
  t.same(readMail('<a@x.example> size=999 BODY=8bitmime RET=hdrs ENVID=id+2B1+3D AUTH=<>', rules), {
    address: 'a@x.example',
    smtpUtf8: false,
    size: 999,
    body: '8BITMIME',
    ret: 'HDRS',
    envid: 'id+1=',
  })
})

t.test('RCPT parameters are parsed', async t => {
  t.same(readRcpt('<a@x.example> NOTIFY=success,FAILURE ORCPT=rfc822;ann+2Blee@x.example', false, rules), {
    address: 'a@x.example',
    notify: ['SUCCESS', 'FAILURE'],
    orcpt: 'rfc822;ann+lee@x.example',
  })
  t.match(readRcpt('<a@x.example> NOTIFY=NEVER', false, rules), { notify: ['NEVER'] })
})

t.test('malformed and repeated parameters are 501', async t => {
  for (const parameters of [
    'SIZE',
    'SIZE=',
    'SIZE=-1',
    'SIZE=1e3',
    'SIZE=123456789012345678901',
    'SIZE=1 SIZE=1',
    'SIZE=1=1',
    'BODY=9BIT',
    'BODY=BINARYMIME',
    'SMTPUTF8=yes',
    'RET=ALL',
    'RET=FULL ret=FULL',
    'ENVID=',
    'ENVID=a+2b',
    'ENVID=a+0D+0Ab',
    'ENVID=a+',
    `ENVID=${'x'.repeat(101)}`,
    '-SIZE=1',
    '=1',
    'A B C D E F G H I J K L',
  ])
    t.match(readMail(`<a@x.example> ${parameters}`, rules), /^5(01|55) 5\.5\.4 /, parameters)
  for (const parameters of [
    'NOTIFY',
    'NOTIFY=',
    'NOTIFY=NEVER,SUCCESS',
    'NOTIFY=SUCCESS,SUCCESS',
    'NOTIFY=SUCCESS,',
    'NOTIFY=SOON',
    'NOTIFY=SUCCESS NOTIFY=FAILURE',
    'ORCPT=ann@x.example',
    'ORCPT=;ann',
    'ORCPT=rfc822;',
    'ORCPT=rfc822;a+0Ab',
    `ORCPT=rfc822;${'x'.repeat(500)}`,
  ])
    t.match(readRcpt(`<a@x.example> ${parameters}`, false, rules), /^501 5\.5\.4 /, parameters)
})

t.test('unknown parameters are 555, and after HELO all are', async t => {
  t.match(readMail('<a@x.example> BY=100;R', rules), /^555 5\.5\.4 /)
  t.match(readMail('<a@x.example> NOTIFY=NEVER', rules), /^555 5\.5\.4 /)
  t.match(readRcpt('<a@x.example> SIZE=1', false, rules), /^555 5\.5\.4 /)
  t.match(readMail('<a@x.example> SIZE=1', { ...rules, isEsmtp: false }), /^555 5\.5\.4 /)
})

t.test('a non-ASCII address requires SMTPUTF8', async t => {
  const { dialogue, receiver } = await smtpService(t)
  await dialogue(`
    C MAIL FROM:<zoë@x.example>
    S 553 5.6.7 ...
    C MAIL FROM:<a@x.example>
    S 250 ...
    C RCPT TO:<zoë@x.example>
    S 553 5.6.7 ...
    C RSET
    S 250 ...
    C MAIL FROM:<zoë@x.example> SMTPUTF8
    S 250 ...
    C RCPT TO:<b@bücher.example>
    S 250 ...
    C DATA
    S 354 ...
    C .
    S 250 ...
    RAW "MAIL FROM:<\\u00e9@x.example> SMTPUTF8\\r\\n"
    S 500 5.5.2 ...
  `)
  t.match(receiver.messages, [
    { mail: { address: 'zoë@x.example', smtpUtf8: true }, recipients: [{ address: 'b@bücher.example' }] },
  ])
})

t.test('a SIZE over the limit is rejected at MAIL', async t => {
  const { dialogue } = await smtpService(t, { limits: { messageSize: 1_000 } })
  await dialogue(`
    C MAIL FROM:<a@x.example> SIZE=1001
    S 552 5.3.4 ...
    C MAIL FROM:<a@x.example> SIZE=1000
    S 250 ...
  `)
})
