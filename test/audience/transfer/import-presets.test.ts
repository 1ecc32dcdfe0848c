/** Exports of other systems in their own column layouts, and our own export on its way out and back. */
import t from 'tap'
import { listContacts } from '../../../src/audience/contacts/contact-page-store.js'
import { createContact } from '../../../src/audience/contacts/contacts.js'
import { findStaticLists } from '../../../src/audience/lists/list-store.js'
import { CONTACT_TAGS, LIST_MEMBERS, thingsOf } from '../../../src/audience/pair-store.js'
import { exportContacts } from '../../../src/audience/transfer/export-contacts.js'
import type { UploadOptions } from '../../../src/audience/transfer/receive-file.js'
import type { Database } from '../../../src/db/database.js'
import { listSuppressions } from '../../../src/deliverability/suppressions/suppression-store.js'
import { eachDatabase } from '../../support/db/database.js'
import { imported, partsOf } from '../../support/imports.js'
import { NOW } from '../../support/mailroom.js'

const ALL = { limit: 100, offset: 0 }

async function suppressionsIn({ reader }: Database): Promise<Record<string, string>> {
  const all = await listSuppressions(reader, 'w1', ALL)
  return Object.fromEntries(
    all.map(({ email, reason, scope }) => [email.split('@')[0], `${reason} ${scope}`]),
  )
}

async function contactsIn({ reader }: Database, workspaceId = 'w1') {
  const { items } = await listContacts(reader, workspaceId, {}, ALL, () => {})
  const seqs = items.map(({ seq }) => seq)
  const [lists, tags] = [
    await thingsOf(reader, LIST_MEMBERS, seqs),
    await thingsOf(reader, CONTACT_TAGS, seqs),
  ]
  const names = (things: readonly { readonly name: string }[] = []) => things.map(({ name }) => name).sort()
  return items.toReversed().map(({ seq, email, firstName, lastName, subscribed, attributes }) => ({
    ...{ email, firstName, lastName, subscribed, attributes },
    ...{ lists: names(lists.get(seq)), tags: names(tags.get(seq)) },
  }))
}

eachDatabase(
  t,
  'a listmonk export keeps who is disabled or blocklisted from being mailed',
  async (t, database) => {
    const text =
      'uuid,email,name,attributes,status,created_at,updated_at\n' +
      '0f1b,ann@x.example,Ann van Lee,"{""city"": ""Bonn"", ""age"": 5}",enabled,2024-01-01T10:00:00Z,2024-01-01T10:00:00Z\n' +
      '0f1c,bob@x.example,Bob,{},disabled,2024-01-01T10:00:00Z,2024-01-01T10:00:00Z\n' +
      '0f1d,max@x.example,,{},blocklisted,2024-01-01T10:00:00Z,2024-01-01T10:00:00Z\n' +
      '0f1e,odd@x.example,,{},strange,2024-01-01T10:00:00Z,2024-01-01T10:00:00Z\n'
    const done = await imported(partsOf(database), text)
    t.match(done, { created: 3, rejected: 1, options: { preset: 'listmonk' } })
    t.match(await contactsIn(database), [
      { email: 'ann@x.example', firstName: 'Ann', lastName: 'van Lee', subscribed: true },
      { email: 'bob@x.example', firstName: 'Bob', lastName: null, subscribed: false },
      { email: 'max@x.example', subscribed: false, attributes: {} },
    ])
    t.same((await contactsIn(database))[0]?.attributes, { city: 'Bonn', age: 5 })
    t.same(await suppressionsIn(database), { max: 'manual all' })
  },
)

eachDatabase(t, 'a listmonk export padded with spaces is read like any other', async (t, database) => {
  const text =
    'uuid, email, name, attributes, status, created_at, updated_at\n' +
    '0f1b, ann@x.example, Ann Lee, "{""city"": ""Bonn, am Rhein"", ""age"": 5}", enabled, , \n' +
    '0f1c, bob@x.example, "Bob", "{}", blocklisted, , \n'
  t.match(await imported(partsOf(database), text), {
    created: 2,
    rejected: 0,
    options: { preset: 'listmonk' },
  })
  t.match(await contactsIn(database), [
    { firstName: 'Ann', lastName: 'Lee', attributes: { city: 'Bonn, am Rhein', age: 5 } },
    { firstName: 'Bob', lastName: null, subscribed: false },
  ])
})

const MAILCHIMP = 'MEMBER_RATING,OPTIN_TIME,OPTIN_IP,CONFIRM_TIME,CONFIRM_IP,GMTOFF,DSTOFF,TIMEZONE,CC,REGION'
const MEMBER = '2,"2024-01-01 09:00:00",192.0.2.1,"2024-01-01 09:05:00",192.0.2.1,1,0,Europe/Berlin,DE,BE'

eachDatabase(t, 'the files of a Mailchimp audience say what their names say', async (t, database) => {
  const parts = partsOf(database)
  const heading = `"Email Address","First Name","Last Name",${MAILCHIMP}`
  const subscribed =
    `${heading},LAST_CHANGED,LEID,EUID,NOTES,TAGS\n` +
    `ann@x.example,Ann,Lee,${MEMBER},"2024-01-02 10:00:00",1,e1,,"""VIP"",""from, shop"""\n`
  t.match(await imported(parts, subscribed), { created: 1, rejected: 0, options: { preset: 'mailchimp' } })
  const unsubscribed =
    `${heading},UNSUB_TIME,UNSUB_CAMPAIGN_TITLE,UNSUB_CAMPAIGN_ID,UNSUB_REASON,UNSUB_REASON_OTHER,LEID,EUID,NOTES,TAGS\n` +
    `bob@x.example,Bob,,${MEMBER},"2024-02-03 10:00:00",News,c1,"No longer interested",,2,e2,,\n` +
    `spam@x.example,,,${MEMBER},"2024-02-03 10:00:00",News,c1,"Spammy content",,3,e3,,\n`
  t.match(await imported(parts, unsubscribed), { created: 2 })
  const cleaned =
    `${heading},CLEAN_TIME,CLEAN_CAMPAIGN_TITLE,CLEAN_CAMPAIGN_ID,LEID,EUID,NOTES,TAGS\n` +
    `gone@x.example,,,${MEMBER},"2024-03-04 10:00:00",News,c1,4,e4,,\n`
  t.match(await imported(parts, cleaned), { created: 1 })
  await imported(
    parts,
    `${heading},LAST_CHANGED,LEID,EUID,NOTES,TAGS\nshop@x.example,,,${MEMBER},,5,e5,,\n`,
    {
      fileName: 'nonsubscribed_email_audience_export_1.csv',
    },
  )
  t.match(await contactsIn(database), [
    { email: 'ann@x.example', firstName: 'Ann', subscribed: true, tags: ['VIP', 'from, shop'] },
    { email: 'bob@x.example', subscribed: false },
    { email: 'spam@x.example', subscribed: false },
    { email: 'gone@x.example' },
    { email: 'shop@x.example', subscribed: false },
  ])
  t.same((await contactsIn(database))[0]?.attributes, { TIMEZONE: 'Europe/Berlin', CC: 'DE', REGION: 'BE' })
  t.same(await suppressionsIn(database), {
    ...{ bob: 'unsubscribe marketing', spam: 'complaint all', gone: 'hard_bounce all' },
  })
})

eachDatabase(t, 'files of suppressions suppress, and make no contacts', async (t, database) => {
  const parts = partsOf(database)
  const files: readonly (readonly [string, string, UploadOptions, Record<string, string>])[] = [
    [
      'sendgrid',
      'status,reason,email,created\n5.1.1,"550 5.1.1 no such user, sorry",sb@x.example,1700000000\n',
      {},
      { sb: 'hard_bounce all' },
    ],
    [
      'sendgrid',
      'status,reason,email,created\n5.7.1,"550 refused",sk@x.example,1700000000\n',
      { fileName: 'suppression_blocks.csv' },
      { sk: 'manual all' },
    ],
    [
      'sendgrid',
      'ip,email,created\n192.0.2.1,ss@x.example,1700000000\n',
      { preset: 'sendgrid' },
      { ss: 'complaint all' },
    ],
    [
      'sendgrid',
      'reason,email,created\nKnown bad domain,si@x.example,1700000000\n',
      { preset: 'sendgrid' },
      { si: 'hard_bounce all' },
    ],
    [
      'sendgrid',
      'email,created\nsu@x.example,1700000000\n',
      { preset: 'sendgrid' },
      { su: 'unsubscribe marketing' },
    ],
    [
      'postmark',
      'EmailAddress,SuppressionReason,Origin,CreatedAt\n' +
        'pb@x.example,HardBounce,Recipient,2019-12-17T08:58:33-05:00\n' +
        'pc@x.example,SpamComplaint,Recipient,2019-12-17T08:58:33-05:00\n' +
        'pu@x.example,ManualSuppression,Recipient,2019-12-17T08:58:33-05:00\n' +
        'pm@x.example,ManualSuppression,Customer,2019-12-17T08:58:33-05:00\n',
      {},
      { pb: 'hard_bounce all', pc: 'complaint all', pu: 'unsubscribe marketing', pm: 'manual all' },
    ],
    [
      'brevo',
      'email;senderEmail;reason;blockedAt\nvb@x.example;us@y.example;hardBounce;2024-01-01\n' +
        'vc@x.example;us@y.example;contactFlaggedAsSpam;2024-01-01\nvu@x.example;us@y.example;unsubscribedViaEmail;2024-01-01\n',
      { preset: 'brevo' },
      { vb: 'hard_bounce all', vc: 'complaint all', vu: 'unsubscribe marketing' },
    ],
    [
      'postal',
      'id,type,address,reason,timestamp,keep_until\n1,recipient,o@x.example,too many hard fails,1700000000.1,1702592000.1\n',
      {},
      { o: 'hard_bounce all' },
    ],
  ]
  let known = {}
  for (const [preset, text, wishes, expected] of files) {
    const done = await imported(parts, text, wishes)
    t.match(done, { status: 'completed', rejected: 0, options: { preset } }, text)
    known = { ...known, ...expected }
    t.same(await suppressionsIn(database), known, text)
  }
  t.same(await contactsIn(database), [])
})

eachDatabase(t, 'a Brevo export of contacts suppresses who is blocklisted', async (t, database) => {
  const text =
    'CONTACT ID;EMAIL;FIRSTNAME;LASTNAME;SMS;EMAIL_BLACKLISTED;ADDED_TIME;MODIFIED_TIME\n' +
    '1;ann@x.example;Ann;Lee;;false;01-02-2024;01-02-2024\n2;bob@x.example;Bob;;;true;01-02-2024;01-02-2024\n'
  t.match(await imported(partsOf(database), text, { preset: 'brevo' }), { created: 2, rejected: 0 })
  t.match(await contactsIn(database), [
    { email: 'ann@x.example', firstName: 'Ann', lastName: 'Lee', subscribed: true, attributes: {} },
    { email: 'bob@x.example', firstName: 'Bob', subscribed: false },
  ])
  t.same(await suppressionsIn(database), { bob: 'manual all' })
})

eachDatabase(
  t,
  'our own export comes back elsewhere with lists, tags and types, and changes nothing where it came from',
  async (t, database) => {
    const parts = partsOf(database)
    const text = 'mail,groups,tags,plan\nann@x.example,"News; ""Bonn, city""","vip;""a;b""",pro\n'
    const made = await imported(parts, text, { mapping: { mail: 'email', groups: 'lists' } })
    t.match(made, { created: 1, rejected: 0 })
    await database.write(tx =>
      createContact(
        parts,
        tx,
        { workspaceId: 'w1', isSandbox: false, source: 'api' },
        {
          email: 'bob@x.example',
          attributes: {
            ...{
              age: 5,
              price: -1.5,
              active: true,
              zip: '01234',
              nested: { a: [1] },
              odd: '1e3',
              guard: "'=x",
            },
            ...{ line: '\nx', wide: '＝1' },
          },
        },
      ),
    )
    let out = ''
    for await (const piece of exportContacts(database.reader, 'w1', {}, NOW)) out += piece
    t.match(await imported(parts, out), {
      created: 0,
      updated: 0,
      unchanged: 2,
      options: { preset: 'postroad' },
    })
    t.match(await imported(parts, out, {}, 'w2'), { created: 2, rejected: 0 })
    const here = await contactsIn(database)
    t.match(here[0], { lists: ['Bonn, city', 'News'], tags: ['a;b', 'vip'] })
    t.same(await contactsIn(database, 'w2'), here)
    t.equal((await findStaticLists(database.reader, 'w2')).length, 2)
  },
)

eachDatabase(t, 'without a preset a file is read by its columns alone', async (t, database) => {
  const text = 'status,reason,email,created\n5.1.1,x,a@x.example,1\n'
  t.match(await imported(partsOf(database), text, { preset: 'none' }), {
    created: 1,
    options: { preset: null },
  })
  t.same(await suppressionsIn(database), {})
})
