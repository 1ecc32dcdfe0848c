/**
 * `make bounce-score`: how many of the labelled bounces in ../shared/bounces are read right, by family and altogether.
 *
 * Prints one line and ends well where the folder is not there. Arguments: `--failing` names the mails that are not right
 * and why.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readReturnedMail } from '../../../src/mail/returned/read-returned-mail.js'
import { judge, type Label } from './bounce-labels.js'

const FOLDER = join(process.cwd(), '..', 'shared', 'bounces')
const LABELS = join(FOLDER, 'labels.json')

interface Tally {
  mails: number
  recipients: number
  status: number
  permanence: number
  feedback: number
  right: number
}

function score(): void {
  const labels = JSON.parse(readFileSync(LABELS, 'utf8')) as Readonly<Record<string, readonly Label[]>>
  const tallies = new Map<string, Tally>()
  const failing: string[] = []
  for (const name of readdirSync(FOLDER).sort()) {
    const expected = labels[name]
    if (!expected) continue
    const read = readReturnedMail(readFileSync(join(FOLDER, name)))
    const verdict = judge(read, expected)
    const isRight = Object.values(verdict.right).every(Boolean)
    for (const family of [name.replace(/-\d+\.eml$/, ''), 'all']) add(tallies, family, verdict.right, isRight)
    if (!isRight) failing.push(`${name} [${read.form}, ${read.kind}] ${verdict.complaints.join('; ')}`)
  }
  console.log(['family', 'mails', 'recipients', 'status', 'permanence', 'feedback', 'all right'].join('\t'))
  for (const [family, tally] of tallies) if (family !== 'all') printRow(family, tally)
  const all = tallies.get('all')
  if (all) printRow('all', all)
  if (process.argv.includes('--failing')) console.log(failing.join('\n'))
}

function add(
  tallies: Map<string, Tally>,
  family: string,
  right: Record<string, boolean>,
  isRight: boolean,
): void {
  const tally = tallies.get(family) ?? {
    mails: 0,
    recipients: 0,
    status: 0,
    permanence: 0,
    feedback: 0,
    right: 0,
  }
  tallies.set(family, tally)
  tally.mails++
  if (right['recipients']) tally.recipients++
  if (right['status']) tally.status++
  if (right['permanence']) tally.permanence++
  if (right['feedback']) tally.feedback++
  if (isRight) tally.right++
}

function printRow(family: string, { mails, recipients, status, permanence, feedback, right }: Tally): void {
  const share = `${((100 * right) / mails).toFixed(1)}%`
  console.log([family, mails, recipients, status, permanence, feedback, share].join('\t'))
}

if (existsSync(LABELS)) score()
else console.log('no labelled bounces in ../shared/bounces')
