/** TLS policies in `postroad message show`. */
import t from 'tap'
import type { Static } from 'typebox'
import { messageText } from '../../src/cli/mail/message.js'
import type { MessageSchema } from '../../src/msa/log/message-schema.js'

type View = Static<typeof MessageSchema>
type Host = View['trace'][number]['hosts'][number]

/** The lines about the one host that was tried. */
function hostLines(parts: Partial<Host>): string[] {
  const host: Host = {
    host: 'mx.example',
    address: '192.0.2.25',
    port: 25,
    stage: 'final_dot',
    reply: '250 2.0.0 queued',
    error: null,
    tls: null,
    tls_policy: 'opportunistic',
    tls_policy_source: 'default',
    mta_sts: null,
    duration_ms: 12,
    reused_connection: false,
    ...parts,
  }
  const view: View = {
    message_id: '01890a5d-ac96-774b-bcce-b302099a8057',
    status: 'delivered',
    to: 'ann@example.com',
    sent_at: null,
    delivered_at: null,
    opened_at: null,
    clicked_at: null,
    bounced_at: null,
    complained_at: null,
    bounce_type: null,
    delivery_state: null,
    attempts: 1,
    next_attempt_at: null,
    last_reply: null,
    waiting_for: null,
    subject: 'Your order',
    from: 'shop@sender.example',
    tags: [],
    attachments: [],
    batch_id: null,
    campaign_id: null,
    contact_id: null,
    template_id: null,
    created_at: '2026-01-05T10:00:00.000Z',
    is_sandbox: false,
    trace: [
      {
        attempt: 1,
        started_at: '2026-01-05T10:00:00.000Z',
        finished_at: '2026-01-05T10:00:01.000Z',
        outcome: 'delivered',
        summary: 'mx.example answered 250 2.0.0 queued',
        reply_code: 250,
        smtp_status: '2.0.0',
        cause: null,
        scope: null,
        subtype: null,
        hosts: [host],
      },
    ],
  }
  const lines = messageText(view, 'b+token@bounce.sender.example').split('\n')
  return lines.slice(lines.findIndex(line => line.startsWith('  mx.example [')) + 1)
}

t.test('a failed enforced policy is named with its reason', t => {
  const lines = hostLines({
    stage: 'starttls',
    reply: null,
    error: 'certificate not trusted: self-signed certificate',
    tls_policy: 'verify',
    tls_policy_source: 'mta-sts',
    mta_sts: { mode: 'enforce', result: 'failed', reason: 'self-signed certificate' },
  })
  t.same(lines, [
    '    TLS policy: verify (mta-sts)',
    '    MTA-STS enforce, failed: self-signed certificate',
    '    starttls: certificate not trusted: self-signed certificate',
  ])
  t.end()
})

t.test('a delivery that a testing policy would have stopped is shown with the reason', t => {
  const lines = hostLines({ mta_sts: { mode: 'testing', result: 'failed', reason: 'no TLS' } })
  t.same(lines, ['    MTA-STS testing, failed: no TLS', '    final_dot: 250 2.0.0 queued'])
  t.end()
})

t.test('a policy that was not checked is named alone', t => {
  const lines = hostLines({ mta_sts: { mode: 'enforce', result: null, reason: null } })
  t.same(lines[0], '    MTA-STS enforce')
  t.end()
})

t.test('without a policy nothing is shown', t => {
  t.same(hostLines({}), ['    final_dot: 250 2.0.0 queued'])
  t.same(hostLines({ tls_policy: null, tls_policy_source: null }), ['    final_dot: 250 2.0.0 queued'])
  t.end()
})
