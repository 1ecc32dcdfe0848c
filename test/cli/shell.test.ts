/** Shell completion, the manual page, and errors as JSON. */
import t from 'tap'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { initialise, install } from '../support/program/process.js'

/** What bash offers behind these words. */
function completedByBash(script: string, words: string[]): string[] {
  const asked = `${script}
COMP_WORDS=(${words.map(word => `'${word}'`).join(' ')})
COMP_CWORD=${words.length - 1}
_postroad
printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-c', asked], { encoding: 'utf8' })
    .split('\n')
    .filter(one => one !== '')
}

t.test('bash completes commands, subcommands and options', async t => {
  const { out } = await install(t).run('completion', 'bash')
  t.strictSame(completedByBash(out, ['postroad', 'que']), ['queue'])
  t.strictSame(completedByBash(out, ['postroad', 'queue', 'rel']), ['release'])
  t.strictSame(completedByBash(out, ['postroad', 'queue', 'list', '--dom']), ['--domain'])
  const afterOption = completedByBash(out, ['postroad', 'queue', '--json', 'li'])
  t.strictSame(afterOption, ['list'], 'options stand anywhere')
})

t.test('bash completes file arguments, and no values it cannot know', async t => {
  const { out } = await install(t).run('completion', 'bash')
  const folder = mkdtempSync(join(tmpdir(), 'completion-'))
  const file = join(folder, 'people.csv')
  writeFileSync(file, '')
  t.strictSame(completedByBash(out, ['postroad', 'serve', '--config', join(folder, 'pe')]), [file])
  t.strictSame(completedByBash(out, ['postroad', 'suppress', 'import', join(folder, 'pe')]), [file])
  t.strictSame(completedByBash(out, ['postroad', 'queue', 'list', '--domain', '']), [])
})

t.test('each supported shell gets a script, others are refused', async t => {
  const postroad = install(t)
  t.match((await postroad.run('completion', 'zsh')).out, /^#compdef postroad\n/)
  t.match((await postroad.run('completion', 'fish')).out, /complete -c postroad .* -a queue /)
  t.match(await postroad.run('completion', 'csh'), { status: 2, err: /bash, zsh, fish/ })
})

t.test('the manual page lists every command with its options', async t => {
  const { out } = await install(t).run('man')
  t.match(out, /^\.TH POSTROAD 1 /)
  for (const command of ['serve', 'queue release', 'backup', 'suppress import'])
    t.match(out, `.B postroad ${command} `, command)
  t.match(out, '\\-\\-domain <')
})

t.test('every command that opens the appliance accepts --json and --config', async t => {
  const postroad = install(t)
  const { out } = await postroad.run('man')
  const commands = [...out.matchAll(/^\.B postroad ([a-z ]+?) (?:\\-|\[|<)/gm)].map(([, path]) =>
    path!.split(' '),
  )
  t.ok(commands.length > 50)
  for (const path of commands) {
    if (['completion', 'man'].includes(path[0]!)) continue
    const help = (await postroad.run(...path, '--help')).out
    t.match(help, /--json/, path.join(' '))
    t.match(help, /--config <file>/, path.join(' '))
  }
})

t.test('with --json an error is one JSON object on standard error', async t => {
  const postroad = await initialise(t)
  const errorOf = async (...args: string[]) => {
    const { status, out, err } = await postroad.run(...args, '--json')
    t.equal(out, '', args.join(' '))
    return { status, ...(JSON.parse(err) as object) }
  }
  t.match(await errorOf('message', 'show', 'none'), {
    status: 1,
    error: { code: 'not_found', message: /no message none/ },
  })
  t.match(await errorOf('queue', 'frobnicate'), {
    status: 2,
    error: { code: 'usage_error', message: "unknown command 'frobnicate'" },
  })
  t.match(await errorOf('message', 'show'), {
    status: 2,
    error: { code: 'usage_error', message: /missing required argument/ },
  })
  t.match(await errorOf('queue'), { status: 2, error: { code: 'usage_error' } })
  t.match(await errorOf('config', 'check', '--config', '/nowhere/postroad.toml'), {
    status: 2,
    error: { code: 'configuration_error', faults: [/no such file/] },
  })
  const { err } = await postroad.run('bounce', 'parse', '/nowhere/mail', '--json')
  t.match(JSON.parse(err), { error: { code: 'failed', message: /\/nowhere\/mail: .*no such file/ } })
})
