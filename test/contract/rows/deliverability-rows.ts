/** Rule -> test for domains, suppressions and bounces. */
import { inFile, type Row } from '../row.js'

const domains = inFile('deliverability/domains-served')
const suppressions = inFile('deliverability/suppressions-served')
const bounces = inFile('deliverability/bounces-served')

const TABLE = 'Deliverability, domains, analytics, tracking'
const ADDED = domains('adding a domain returns the records to publish')
const FLOW = domains('with its records published a domain is verified, and mail is sent in its name')
const NOT_VERIFIED = domains(
  'without one of its DKIM records a domain is not verified, and the values in DNS are shown',
)
const REMOVED = domains('a removed domain is gone and can be added again')
const ONCE = suppressions('an address is suppressed once, whatever its case, and again after removal')
const REFUSAL = bounces("a rejection bounces the message and records the server's reply")
const FILTERED = bounces('bounces are filtered by type, address and time, and paged, newest first')

export const DELIVERABILITY_ROWS: readonly Row[] = [
  {
    rule: 'reports about a domain are shown to those who have verified it',
    from: [],
    answers: [
      'GET /api/v1/domains/{id}/reports: domain_invalid',
      'GET /api/v1/domains/{id}/report-statistics: domain_invalid',
      'GET /api/v1/domains/{id}/reports/{reportId}: domain_invalid',
    ],
    tests: [domains('reports about an unverified domain are rejected')],
  },
  {
    rule: 'a suppression changes its contact at once, its removal takes that back; no PATCH subscribes against it',
    from: [
      'decisions: Added after the whole contract was tried from outside > **Suppressions and contacts** POST and',
    ],
    answers: ['PATCH /api/v1/contacts/{id}: conflict'],
    tests: [
      suppressions('a contact is unsubscribed while a manual suppression exists, and resubscribed after it'),
    ],
  },
  {
    rule: 'POST /domains answers the DKIM CNAMEs and the verification TXT to publish; once in a workspace',
    from: [`${TABLE} > POST /domains`, 'Other resources > Domain domain (string) Adding returns'],
    tests: [
      ADDED,
      domains('a domain exists once per workspace, and may exist in another'),
      domains('an invalid domain is rejected by field name'),
    ],
  },
  {
    rule: 'a DNS record has type, name, value, ttl, purpose, status and required; a DKIM CNAME a TXT alternative',
    from: ['decisions: Deliverability > DNS record in dns_records {type'],
    tests: [ADDED, FLOW, NOT_VERIFIED],
  },
  {
    rule: 'verify finds the records and sets verified; without them it is 200 with verified false and what was found',
    from: [
      `${TABLE} > POST /domains/:id/verify`,
      'States and transitions > Domain',
      'What the service does > Sending domains (custom-domain verification) suppressions',
    ],
    tests: [FLOW, NOT_VERIFIED],
  },
  {
    rule: 'domains are listed, shown with their verification status and deleted',
    from: [`${TABLE} > GET /domains`, `${TABLE} > GET /domains/:id`, `${TABLE} > DELETE /domains/:id`],
    tests: [FLOW, REMOVED, domains('domains are listed by name in pages, for their workspace')],
  },
  {
    rule: 'POST /domains/:id/rotate-dkim is a 409 conflict while the standby key is not published, and right after a rotation',
    from: ['decisions: Deliverability > DNS record in dns_records {type'],
    answers: ['POST /api/v1/domains/{id}/rotate-dkim: conflict'],
    tests: [domains('a domain with unpublished standby keys or a recent rotation is not rotated')],
  },
  {
    rule: 'POST /suppressions takes an address or a @domain, a reason and a scope; a wider scope widens the entry (200), a repeat is a 409 duplicate',
    from: [
      `${TABLE} > POST /suppressions`,
      'decisions: Deliverability > Suppression {email reason scope source_message_id',
      'decisions: Email > POST /suppressions with a wider',
    ],
    tests: [
      ONCE,
      suppressions('a wider scope widens the entry; the same or a narrower one is a duplicate'),
      suppressions('an entry is found, honoured and removed in any notation of its domain'),
      suppressions('an invalid suppression is rejected by field name'),
      suppressions('a suppressed address or domain is not mailed until removed'),
      suppressions('an unsubscribed recipient still gets single sends and batches'),
    ],
  },
  {
    rule: 'suppressions are filtered by reason and paged',
    from: [`${TABLE} > GET /suppressions`, 'Other resources > Suppression an email address filterable'],
    tests: [suppressions('the list is filtered by reason, scope and address, and paged')],
  },
  {
    rule: 'DELETE /suppressions/:email lets the address be mailed again',
    from: [`${TABLE} > DELETE /suppressions/:email`],
    tests: [ONCE, suppressions('a suppressed address or domain is not mailed until removed')],
  },
  {
    rule: 'up to 1,000 entries are added or removed at once: POST /suppressions/batch, POST /suppressions/bulk-delete',
    from: [`${TABLE} > POST /suppressions`],
    tests: [suppressions('many entries are added and removed at once')],
  },
  {
    rule: 'bounces are filtered by type (permanent, transient, undetermined), email, since and until, and paged',
    from: [`${TABLE} > GET /bounces`, 'Other resources > Bounce filterable by type (permanent'],
    tests: [FILTERED],
  },
  {
    rule: 'a bounce has smtp_status, diagnostic_code, isp_name, cause and scope',
    from: [`${TABLE} > GET /bounces/:id`, 'Other resources > Bounce filterable by type (permanent'],
    tests: [REFUSAL],
  },
  {
    rule: "a recipient is suppressed only for a cause that is the recipient's",
    from: ['decisions: Deliverability > A recipient is suppressed only'],
    tests: [bounces('a recipient is suppressed only for causes of the recipient')],
  },
]
