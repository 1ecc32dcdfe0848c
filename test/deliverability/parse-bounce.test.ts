/** `POST /bounces/parse`: how a returned mail is read, for operators. */
import t from 'tap'
import { tokenWith } from '../support/program/operators.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { deliveryReport, group, notice, REPORTER } from '../support/returned/returned-mail.js'

const PARSE = '/api/admin/v1/bounces/parse'

t.test('a returned mail is parsed by any operator, and nothing is stored', async t => {
  const postroad = await openTestAppliance(t)
  const key = await tokenWith(postroad, [{ workspaceId: postroad.workspaceId, role: 'viewer' }])
  const parse = async (body: string | Buffer, type = 'message/rfc822') => {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': type }
    const answer = await fetch(postroad.baseUrl + PARSE, { method: 'POST', headers, body })
    return { status: answer.status, body: await answer.json() }
  }
  const before = postroad.rowCounts()
  const bounce = deliveryReport(REPORTER + group({ 'Remote-MTA': 'dns; gmail-smtp-in.l.google.com' }))
  t.match(await parse(bounce), {
    status: 200,
    body: {
      data: {
        kind: 'bounce',
        format: 'rfc3464',
        original_message_id: 'm1.abc@sender.example',
        recipients: [
          {
            recipient: 'ann@example.net',
            action: 'failed',
            status: '5.1.1',
            reply_code: 550,
            isp_name: 'Gmail',
            type: 'permanent',
            subtype: 'no_such_mailbox',
            cause: 'recipient',
            scope: 'address',
            feedback_type: null,
          },
        ],
      },
    },
  })
  t.match(await parse(notice({ subject: 'Automatic reply: hello', text: 'Away.' })), {
    body: { data: { kind: 'auto_reply' } },
  })
  const large = Buffer.concat([Buffer.from(bounce), Buffer.alloc(3 * 1_024 * 1_024, 'x\n')])
  t.match(
    await parse(large),
    { status: 200, body: { data: { kind: 'bounce' } } },
    'only its beginning is read',
  )
  for (const [hostile, type] of [
    [Buffer.alloc(0), 'message/rfc822'],
    [Buffer.from([0, 255, 10, 13, 0]), 'text/plain'],
  ] as const)
    t.match(await parse(hostile, type), { status: 200, body: { data: { kind: 'other', recipients: [] } } })
  const form = new FormData()
  form.append('file', new Blob([bounce]), 'bounce.eml')
  const headers = { Authorization: `Bearer ${key}` }
  const answer = await fetch(postroad.baseUrl + PARSE, { method: 'POST', headers, body: form })
  t.match(await answer.json(), { data: { kind: 'bounce' } }, 'as a form')
  t.match(await parse('{}', 'application/json'), { status: 415 })
  t.same(postroad.rowCounts(), before)
  t.match(await postroad.post(PARSE, '', { key: postroad.key }), { status: 401 })
})
