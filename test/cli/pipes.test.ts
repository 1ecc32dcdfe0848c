/** The program among other programs of a shell: what is piped in, readers that go away, and a Node.js that is too old. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'
import { initialise, install, routeTo, type Installation } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'

interface Ended {
  readonly status: number
  readonly out: string
  readonly err: string
}

const PROGRAM = `"${process.execPath}" "${resolve('dist/main.js')}"`

/** A line for bash, in which `postroad` is the program. */
function shell({ environment }: Installation, line: string): Promise<Ended> {
  const env = { PATH: process.env['PATH'], ...environment }
  return new Promise(done => {
    const script = `postroad() { ${PROGRAM} "$@"; }\n${line}`
    execFile('bash', ['--norc', '-c', script], { env }, (error, out, err) =>
      done({ status: typeof error?.code === 'number' ? error.code : 0, out, err }),
    )
  })
}

t.test('send reads the text or a whole message from a pipe', async t => {
  const sink = await openSink(t)
  const postroad = await initialise(t, { env: routeTo(sink.port) })
  await postroad.serve()
  const sent = async (line: string) => {
    t.match(await shell(postroad, line), { status: 0, out: /status +delivered/ })
    return sink.accepted.at(-1)!.raw.toString()
  }
  const text = await sent(
    "printf 'Hällo\\nBob\\n' | postroad send --from me@sender.test --to ann@one.test --subject Hi",
  )
  t.match(text, /Subject: Hi\r\n/)
  t.match(text, /H=C3=A4llo\r\nBob|Hällo\r\nBob/)
  const message =
    'From: me@sender.test\\nTo: ann@one.test\\nBcc: bob@one.test\\nSubject: Whole\\n\\nAs it came.\\n'
  t.match(await sent(`printf '${message}' | postroad send`), /Subject: Whole\r\n[^]*\r\n\r\nAs it came\./)
  t.same(sink.accepted.flatMap(({ recipients }) => recipients).sort(), [
    'ann@one.test',
    'ann@one.test',
    'bob@one.test',
  ])
  t.notMatch(sink.accepted.map(({ raw }) => raw.toString()).join(), /^Bcc:/im)
  await sent(`printf '${message}' | postroad send --to cem@one.test`)
  t.equal(sink.accepted.length, 4, 'the envelope that is named counts')
  t.match(await shell(postroad, 'postroad send </dev/null'), { status: 2, err: /pipe a message in/ })
  t.match(await shell(postroad, "printf 'Subject: x\\n\\nx\\n' | postroad send --to ann@one.test"), {
    status: 1,
    err: /From/,
  })
})

t.test('a command whose output is closed ends quietly with its usual status', async t => {
  const postroad = await initialise(t)
  const statuses = '; echo "${PIPESTATUS[0]}"'
  t.match(await shell(postroad, `postroad top | head -1 >/dev/null${statuses}`), { out: '0\n', err: '' })
  t.match(await shell(postroad, `postroad config reference | true${statuses}`), { out: '0\n', err: '' })
  t.match(await shell(postroad, `postroad workspace create Other | true${statuses}`), { out: '0\n', err: '' })
  t.match(
    await postroad.json('workspace', 'list'),
    [{ name: 'default' }, { name: 'Other' }],
    'and does its work',
  )
  t.match(await shell(postroad, `postroad config check --config /none 2>&1 | true${statuses}`), {
    out: '2\n',
    err: '',
  })
})

t.test('a Node.js that is too old is refused in one sentence', async t => {
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.4' } })`
  const folder = t.testdir({ 'old.mjs': old })
  const line = `NODE_OPTIONS="--import=${folder}/old.mjs" postroad --version`
  const { status, out, err } = await shell(install(t), line)
  t.equal(status, 1)
  t.equal(out, '')
  t.match(err, /^postroad: needs Node\.js 24 or newer, such as dist\/node, and this is 18\.20\.4 \(.*\)\n$/)
  const first = readFileSync('dist/main.js', 'utf8')
  t.same(first.match(/^import .*$/gm)?.length, 1, 'nothing is loaded before that is looked at')
})
