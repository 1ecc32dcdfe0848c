/** The programs of docs/sending.md: each sends a mail that arrives. */
import t from 'tap'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { initialise } from '../support/program/process.js'
import { until } from '../support/until.js'

const page = readFileSync('docs/sending.md', 'utf8')
const PROGRAMS = [
  { language: 'sh', file: 'send.sh', command: ['sh'], subject: 'From curl' },
  { language: 'js', file: 'send.mjs', command: [process.execPath], subject: 'From Node' },
  { language: 'python', file: 'send.py', command: ['python3'], subject: 'From Python' },
  { language: 'php', file: 'send.php', command: ['php'], subject: 'From PHP' },
  { language: 'go', file: 'send.go', command: ['go', 'run'], subject: 'From Go' },
  { language: 'perl', file: 'send.pl', command: ['perl'], subject: 'From Perl' },
] as const

t.test('the first mail of the documentation arrives in every language', async t => {
  const postroad = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  await postroad.run('domain', 'add', 'example.com', '--workspace', postroad.workspaceId, '--vouch')
  const { baseUrl } = await postroad.serve()
  const folder = mkdtempSync(join(tmpdir(), 'postroad-sending-'))
  for (const { language, file, command, subject } of PROGRAMS) {
    const program = new RegExp(`^\`\`\`${language}\n(.*?)\n\`\`\`$`, 'ms').exec(page)?.[1]
    t.ok(program, language)
    writeFileSync(join(folder, file), program ?? '')
    const [name, ...args] = command
    await promisify(execFile)(name, [...args, join(folder, file)], {
      env: { ...process.env, POSTROAD_URL: baseUrl, POSTROAD_KEY: postroad.key, TO: `${language}@one.test` },
    })
    const caught = await until(`the mail of ${language}`, async () =>
      (await postroad.json<{ recipient: string; subject: string }[]>('capture', 'list')).find(
        mail => mail.recipient === `${language}@one.test`,
      ),
    )
    t.equal(caught.subject, subject)
  }
})
