/** How returned mail is read, by the command line; needs neither configuration nor database. */
import t from 'tap'
import { join } from 'node:path'
import { install } from '../support/program/process.js'
import {
  deliveryReport,
  group,
  multipart,
  notice,
  ORIGINAL,
  REPORTER,
} from '../support/returned/returned-mail.js'

t.test('bounce parse prints the parsed file in the REST form', async t => {
  const folder = t.testdir({ 'a.eml': deliveryReport(REPORTER + group()) })
  const file = join(folder, 'a.eml')
  const { status, out } = await install(t).run('bounce', 'parse', file, '--json')
  t.equal(status, 0)
  t.same(JSON.parse(out), [
    {
      file,
      kind: 'bounce',
      format: 'rfc3464',
      original_message_id: 'm1.abc@sender.example',
      recipients: [
        {
          recipient: 'ann@example.net',
          action: 'failed',
          status: '5.1.1',
          reply_code: 550,
          diagnostic_code: '550 5.1.1 <ann@example.net>: no such user',
          remote_mta: 'mx.example.net',
          isp_name: null,
          type: 'permanent',
          subtype: 'no_such_mailbox',
          cause: 'recipient',
          scope: 'address',
          feedback_type: null,
        },
      ],
    },
  ])
})

t.test('several files are printed in the given order; a delivery report has type other', async t => {
  const complaint = multipart('multipart/report; report-type=feedback-report', [
    'Content-Type: message/feedback-report\n\nFeedback-Type: abuse\n',
    `Content-Type: message/rfc822\n\n${ORIGINAL}`,
  ])
  const folder = t.testdir({
    'relayed.eml': deliveryReport(
      REPORTER + group({ Action: 'relayed', Status: '2.1.9', 'Diagnostic-Code': '' }),
    ),
    'delayed.eml': deliveryReport(REPORTER + group({ Action: 'delayed', Status: '4.4.1' })),
    'complaint.eml': complaint,
    'away.eml': notice({ subject: 'Automatic reply: hello', text: 'Away.' }),
    'empty.eml': '',
  })
  const names = ['relayed', 'delayed', 'complaint', 'away', 'empty'].map(name => join(folder, `${name}.eml`))
  const { out } = await install(t).run('bounce', 'parse', ...names, '--json')
  t.match(JSON.parse(out), [
    { file: names[0], kind: 'other', recipients: [{ action: 'relayed', type: null }] },
    { kind: 'delay' },
    { kind: 'feedback', recipients: [{ recipient: 'ann@example.net', feedback_type: 'abuse' }] },
    { kind: 'auto_reply' },
    { kind: 'other', recipients: [] },
  ])
})

t.test('without --json the result is a few lines of text', async t => {
  const folder = t.testdir({ 'a.eml': deliveryReport(REPORTER + group()) })
  const { out } = await install(t).run('bounce', 'parse', join(folder, 'a.eml'))
  t.match(out, /a\.eml: bounce/)
  t.match(out, /about m1\.abc@sender\.example/)
  t.match(out, /ann@example\.net: failed, 5\.1\.1, 550, permanent, no such mailbox/)
})

t.test('an unreadable file is named and the others are still parsed', async t => {
  const folder = t.testdir({ 'a.eml': deliveryReport(REPORTER + group()) })
  const { status, out, err } = await install(t).run(
    'bounce',
    'parse',
    join(folder, 'missing.eml'),
    join(folder, 'a.eml'),
    folder,
    '--json',
  )
  t.equal(status, 1)
  t.match(err, /missing\.eml: .*no such file/)
  t.match(err, /EISDIR/)
  t.match(JSON.parse(out), [{ file: /a\.eml$/, kind: 'bounce' }])
})

t.test('bounce parse without a file is a usage error', async t => {
  t.match(await install(t).run('bounce', 'parse'), { status: 2, err: /missing required argument 'file'/ })
})
