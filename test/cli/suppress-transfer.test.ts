/** Suppressions from another system, and to one. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { initialise } from '../support/program/process.js'

interface Entry {
  readonly email: string
  readonly reason: string
  readonly scope: string
}

async function open(t: Test) {
  const postroad = await initialise(t)
  const file = join(postroad.dataDir, 'list.csv')
  const owned = ['--workspace', postroad.workspaceId]
  return {
    postroad,
    owned,
    file,
    import: (text: string | Uint8Array) => {
      writeFileSync(file, text)
      return postroad.run('suppress', 'import', file, ...owned, '--json')
    },
    entries: async () =>
      (await postroad.json<Entry[]>('suppress', 'list', ...owned)).map(
        ({ email, reason, scope }) => `${email} ${reason} ${scope}`,
      ),
    export: async () => (await postroad.run('suppress', 'export', ...owned)).out,
  }
}

t.test('a CSV file with columns is imported; existing entries stay, invalid rows are named', async t => {
  const { import: importFile, entries } = await open(t)
  const text = [
    'Name,Email,Reason,Scope',
    'Ann,Ann@x.example,hard_bounce,',
    '"Bob, Jr.",bob@x.example,unsubscribe,',
    'Eve,eve@x.example,complaint,marketing',
    "All,'@y.example,,",
    'Ann,ann@x.example,manual,',
    'Bad,nonsense,,',
    'Bad,ok@x.example,dislike,',
  ].join('\r\n')
  const { status, out } = await importFile(text)
  t.equal(status, 1, 'something was rejected')
  t.match(JSON.parse(out), {
    added: 4,
    known: 1,
    rejected: 2,
    faults: [
      { line: 7, reason: 'nonsense is not a valid address or @domain', value: 'nonsense' },
      { line: 8, reason: /reason dislike is not one of/, value: 'ok@x.example' },
    ],
  })
  t.same(await entries(), [
    '@y.example manual all',
    'eve@x.example complaint marketing',
    'bob@x.example unsubscribe marketing',
    'ann@x.example hard_bounce all',
  ])
})

t.test('an imported hard bounce widens an entry that stopped only marketing', async t => {
  const { import: importFile, entries, postroad, owned } = await open(t)
  await importFile('email,reason\nann@x.example,unsubscribe\nbob@bücher.example,unsubscribe\n')
  const bounces = 'email,reason\nAnn@X.example.,hard_bounce\nbob@xn--bcher-kva.example,hard_bounce\n'
  t.match(JSON.parse((await importFile(bounces)).out), { added: 0, widened: 2, known: 0 })
  t.same(await entries(), ['bob@xn--bcher-kva.example hard_bounce all', 'ann@x.example hard_bounce all'])
  t.match(JSON.parse((await importFile(bounces)).out), { added: 0, widened: 0, known: 2 })
  t.match(JSON.parse((await importFile('email,reason\nann@x.example,unsubscribe\n')).out), { known: 1 })
  t.match(await postroad.run('suppress', 'remove', ...owned, 'bob@BÜCHER.example'), { status: 0 })
  t.same(await entries(), ['ann@x.example hard_bounce all'])
})

t.test(
  'the column of addresses is found by its name in other languages, unless two are in doubt',
  async t => {
    const { import: importFile, entries } = await open(t)
    t.match(JSON.parse((await importFile('Nom;Adresse e-mail\nAnn;ann@x.example\n')).out), {
      added: 1,
      rejected: 0,
    })
    t.match(await importFile('Correo electrónico,E-mail\nbob@x.example,eve@x.example\n'), {
      status: 1,
      err: /the columns .*Correo electrónico.* and .*E-mail.* both mean the address/,
    })
    t.same(await entries(), ['ann@x.example manual all'])
  },
)

t.test('addresses among no-break spaces, in brackets or behind a name are read', async t => {
  const { import: importFile, entries } = await open(t)
  t.match(await importFile('\u00a0ann@x.example\u200b\nBob Lee <bob@x.example>\nmailto:eve@x.example\n'), {
    status: 0,
  })
  t.same(await entries(), [
    'eve@x.example manual all',
    'bob@x.example manual all',
    'ann@x.example manual all',
  ])
  t.match(await importFile('PK\x03\x04\n'), { status: 1, err: /this is a ZIP archive/ })
})

t.test('a file in the charset of a spreadsheet is read: UTF-16 with a mark, or windows-1252', async t => {
  const { import: importFile, entries } = await open(t)
  const utf16 = Buffer.from('\ufeffemail\treason\r\nann@x.example\tcomplaint\r\n', 'utf16le')
  t.match(JSON.parse((await importFile(utf16)).out), { added: 1, rejected: 0 })
  const latin = Buffer.from('Adresse électronique;Ville\nbob@x.example;Orléans\n', 'latin1')
  t.match(JSON.parse((await importFile(latin)).out), { added: 1, rejected: 0 })
  t.same(await entries(), ['bob@x.example manual all', 'ann@x.example complaint all'])
})

t.test('a bare list of addresses is imported', async t => {
  const { import: importFile, entries } = await open(t)
  t.match(await importFile('ann@x.example\n\nbob@x.example\n'), { status: 0 })
  t.same(await entries(), ['bob@x.example manual all', 'ann@x.example manual all'])
})

t.test('many thousand lines are imported in batches', async t => {
  const { import: importFile } = await open(t)
  const lines = Array.from({ length: 5_000 }, (_, n) => `person${n}@x.example`)
  t.match(JSON.parse((await importFile(lines.join('\n'))).out), { added: 5_000, known: 0, rejected: 0 })
})

t.test('an export is complete, safe to open in a spreadsheet, and can be imported again', async t => {
  const { import: importFile, export: exportAll, postroad, owned, entries } = await open(t)
  t.equal(await exportAll(), 'email,reason,scope,source_message_id,created_at\n')
  await importFile(
    'email,reason\n@y.example,manual\n=cmd@x.example,hard_bounce\n-dash@x.example,unsubscribe\n',
  )
  const exported = await exportAll()
  t.match(exported, /^'@y\.example,manual,all,,\d{4}-.*Z\n'=cmd@x\.example,hard_bounce,all,,.*\n'-dash@x/m)
  t.match(await postroad.json('suppress', 'export', ...owned), [
    { email: '@y.example', reason: 'manual' },
    {},
    {},
  ])
  const before = await entries()
  for (const email of ['@y.example', '=cmd@x.example', '-dash@x.example'])
    await postroad.run('suppress', 'remove', ...owned, '--', email)
  t.same(await entries(), [])
  t.match(await importFile(exported), { status: 0 })
  t.same(await entries(), before)
})

t.test(
  'exports of other systems are read in their own layout, and rows beyond a limit are reported',
  async t => {
    const { import: importFile, entries, postroad, owned, file } = await open(t)
    const bounces = 'status,reason,email,created\n5.1.1,"550 no such user, sorry",a@x.example,1700000000\n'
    t.match(JSON.parse((await importFile(bounces)).out), { preset: 'sendgrid', added: 1, rejected: 0 })
    const listmonk =
      'uuid,email,name,attributes,status,created_at,updated_at\n1,b@x.example,,{},blocklisted,,\n2,c@x.example,,{},enabled,,\n'
    t.match(JSON.parse((await importFile(listmonk)).out), { preset: 'listmonk', added: 1, skipped: 1 })
    writeFileSync(file, 'email,created\nd@x.example,1700000000\n')
    t.match(await postroad.run('suppress', 'import', file, ...owned, '--preset', 'sendgrid'), { status: 0 })
    t.match(await postroad.run('suppress', 'import', file, ...owned, '--preset', 'what'), {
      status: 1,
      err: /what is not a preset; use one of postroad, listmonk/,
    })
    t.same((await entries()).sort(), [
      'a@x.example hard_bounce all',
      'b@x.example manual all',
      'd@x.example unsubscribe marketing',
    ])
    t.match(JSON.parse((await importFile(`email\n${','.repeat(1_000_000)}\ne@x.example\n`)).out), {
      added: 1,
      faults: [{ line: 2, reason: 'the row has more than 200 cells' }],
    })
  },
)

t.test('a missing file or workspace is an error', async t => {
  const { postroad, owned, file } = await open(t)
  t.match(await postroad.run('suppress', 'import', `${file}.not`, ...owned), {
    status: 1,
    err: /list\.csv\.not/,
  })
  writeFileSync(file, 'ann@x.example')
  t.match(await postroad.run('suppress', 'import', file, '--workspace', 'w9'), {
    status: 1,
    err: /no workspace w9/,
  })
})
