/** How commands end: 0 when all went well, 1 when something failed, 2 when the command line or the configuration is wrong. */
import t from 'tap'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { initialise, install } from '../support/program/process.js'

const usageErrors: [string[], RegExp][] = [
  [['frobnicate'], /unknown command 'frobnicate'/],
  [['queue', 'frobnicate'], /unknown command 'frobnicate'/],
  [[], /Usage: postroad/],
  [['init', '--frobnicate'], /unknown option '--frobnicate'/],
  [['key', 'create', '--name', 'x'], /--workspace <name\|id>/],
  [
    ['key', 'create', '--workspace', 'x', '--name', 'x', '--rate-limit', 'many'],
    /many is not a whole number/,
  ],
  [['key', 'revoke'], /missing required argument 'id'/],
  [['domain', 'add', 'sender.test'], /--workspace <name\|id>/],
  [['suppress', 'add', 'ann@one.test'], /--workspace <name\|id>/],
  [['send', '--from', 'me@sender.test'], /pass --from, --to and --subject/],
  [['message', 'show'], /missing required argument 'id'/],
  [['queue', 'hold'], /message id.*--domain.*--all/],
  [['queue', 'delete', 'an-id', '--all'], /message id.*--all/],
  [['workspace', 'set', 'an-id', 'hourly_limit'], /not key=value/],
  [['event', 'retry'], /consumer and a number.*--all/],
  [['event', 'drop', 'bounces', 'x'], /x is not a whole number/],
  [['config', 'check', '--config', '/nowhere/postroad.toml'], /\/nowhere\/postroad\.toml.*no such file/s],
]

const failures: [string[], RegExp][] = [
  [['message', 'show', 'none'], /no message none/],
  [['queue', 'show', 'none'], /none is not in the queue/],
  [['key', 'revoke', 'none'], /no key none/],
  [['key', 'create', '--workspace', 'none', '--name', 'x'], /no workspace none/],
  [['key', 'create', '--workspace', 'none', '--name', 'x', '--permissions', 'fly'], /no workspace none/],
  [
    ['key', 'create', '--workspace', 'default', '--name', 'x', '--permissions', 'fly'],
    /unknown permission fly/,
  ],
  [['workspace', 'set', 'none', 'name=x'], /no workspace none/],
  [['workspace', 'remove', 'none'], /no workspace none/],
  [['domain', 'add', 'sender.test', '--workspace', 'none'], /no workspace none/],
  [['domain', 'remove', 'sender.test', '--workspace', 'default'], /no domain sender\.test/],
  [['domain', 'verify', 'sender.test', '--workspace', 'default'], /no domain sender\.test/],
  [['suppress', 'add', 'ann@one.test', '--workspace', 'none'], /no workspace none/],
  [['suppress', 'remove', 'ann@one.test', '--workspace', 'default'], /not suppressed/],
  [['event', 'retry', 'bounces', '7'], /no event 7 of bounces is set aside/],
]

t.test('a usage error exits with 2 and says what is wrong', async t => {
  const postroad = await initialise(t)
  for (const [args, err] of usageErrors)
    t.match(await postroad.run(...args), { status: 2, out: '', err }, args.join(' '))
})

t.test('a failed command exits with 1 and says why', async t => {
  const postroad = await initialise(t)
  for (const [args, err] of failures) {
    const ended = await postroad.run(...args)
    t.match(ended, { status: 1, out: '', err }, args.join(' '))
    t.match(ended.err, /^postroad: /)
    t.notMatch(ended.err, /\n {4}at /, 'no stack trace')
  }
})

t.test('help and version exit with 0', async t => {
  const postroad = install(t)
  t.match(await postroad.run('--version'), { status: 0, out: /^\d+\.\d+\.\d+\n$/, err: '' })
  t.match(await postroad.run('--help'), { status: 0, out: /Commands:/, err: '' })
  t.match(await postroad.run('queue', 'hold', '--help'), { status: 0, out: /--domain/, err: '' })
})

t.test('before init every command that needs the database says to run init', async t => {
  const postroad = install(t)
  for (const args of [
    ['queue', 'list'],
    ['workspace', 'list'],
    ['migrate'],
    ['send', '--from', 'a@b.test', '--to', 'c@d.test', '--subject', 'x'],
  ])
    t.match(
      await postroad.run(...args),
      { status: 1, out: '', err: /run `postroad init` first/ },
      args.join(' '),
    )
})

t.test('the process exits with the status of its command, and its files are private', async t => {
  const postroad = install(t)
  t.match(await postroad.spawn('init', '--json'), { status: 0, out: /"ts_live_\w{32,}"/, err: '' })
  t.match(await postroad.spawn('message', 'show', 'none'), { status: 1, out: '', err: /^postroad: / })
  t.match(await postroad.spawn('frobnicate'), { status: 2, out: '', err: /frobnicate/ })
  t.equal(statSync(postroad.dataDir).mode & 0o077, 0)
  t.equal(statSync(join(postroad.dataDir, 'postroad.db')).mode & 0o077, 0)
})
