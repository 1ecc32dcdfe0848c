/** Rule -> test for the Idempotency-Key. */
import { inFile, type Row } from '../row.js'

const repeats = inFile('msa/rest/send-idempotency')
const failures = inFile('msa/rest/send-failures')
const posts = inFile('http/api/every-post')
const SCOPE = 'decisions: Email > Idempotency scope = workspace +'

export const IDEMPOTENCY_ROWS: readonly Row[] = [
  {
    rule: 'every POST accepts an Idempotency-Key; a repeat is not executed again, nor after a crash; secrets are stored sealed',
    from: [
      'decisions: Added after the whole contract was tried from outside > **Idempotency-Key** is accepted on every',
    ],
    answers: ['posting: conflict', 'posting: idempotency_conflict'],
    tests: [
      posts('every POST accepts an Idempotency-Key, and a repeat gets the first answer'),
      posts('a repeat of an interrupted POST is refused, and so is one with another body'),
      posts('an answer with a secret is repeated, and stored sealed'),
    ],
  },
  {
    rule: 'every 201 has a Location where what was created can be read (additive)',
    from: [
      'decisions: Added after the whole contract was tried from outside > **Idempotency-Key** is accepted on every',
    ],
    tests: [posts('every 201 has a Location, where what was created can be read')],
  },
  {
    rule: 'templates and automations have a strong ETag; If-None-Match and If-Match are honoured (additive)',
    from: ['decisions: Automations > Status draft active paused other'],
    answers: [
      'PATCH /api/v1/templates/{id}: precondition_failed',
      'DELETE /api/v1/templates/{id}: precondition_failed',
      'POST /api/v1/templates/{id}/versions/{n}/restore: precondition_failed',
      'PATCH /api/v1/automations/{id}: precondition_failed',
      'DELETE /api/v1/automations/{id}: precondition_failed',
      'POST /api/v1/automations/{id}/steps: precondition_failed',
      'PUT /api/v1/automations/{id}/steps: precondition_failed',
      'PATCH /api/v1/automations/{id}/steps/{stepId}: precondition_failed',
      'DELETE /api/v1/automations/{id}/steps/{stepId}: precondition_failed',
    ],
    tests: [
      inFile('content/templates-served')('of two updates with the same ETag only the first succeeds'),
      inFile('automations/automations-served')(
        'an automation changes only as its editor saw it, where the editor says so',
      ),
    ],
  },
  {
    rule: 'contacts, lists, tags, segments and forms have one as well (additive)',
    from: ['decisions: Automations > Status draft active paused other'],
    answers: ['contacts', 'lists', 'tags', 'segments', 'forms'].flatMap(things =>
      ['PATCH', 'DELETE'].map(method => `${method} /api/v1/${things}/{id}: precondition_failed`),
    ),
    tests: [
      inFile('audience/editing-served')(
        'of two editors of ${path} who saw the same state, the second gets a conflict',
      ),
      inFile('audience/editing-served')(
        'joining a list or getting a tag is no conflict for those who edit it',
      ),
    ],
  },
  {
    rule: 'campaigns have one, which covers everything but their counts (additive)',
    from: ['decisions: Automations > Status draft active paused other'],
    answers: [
      'PATCH /api/v1/campaigns/{id}: precondition_failed',
      'DELETE /api/v1/campaigns/{id}: precondition_failed',
    ],
    tests: [
      inFile('campaigns/campaign-editing-served')(
        'of two people who edit a campaign the second gets a conflict, and nothing is overwritten',
      ),
      inFile('campaigns/campaign-editing-served')(
        'sending a draft is a conflict for those who edit it, counting its mail is none',
      ),
    ],
  },
  {
    rule: 'single sends, scheduled ones and batches take an Idempotency-Key',
    from: ['Email > Applies to POST /email/send POST'],
    tests: [repeats('scheduled sends and batches are repeated in the same way')],
  },
  {
    rule: 'the key is 1 to 255 printable characters',
    from: ['Email > The header is Idempotency-Key with'],
    tests: [failures('an Idempotency-Key has 1 to 255 printable characters')],
  },
  {
    rule: 'the first is executed and answered `new`, a repeat gets the same answer as `cached`, and nothing is resent',
    from: ['Email > A first request is executed', 'Email > A repeat with the same'],
    tests: [
      repeats('a repeated send is answered as the first was, and mails nobody again'),
      repeats('scheduled sends and batches are repeated in the same way'),
    ],
  },
  {
    rule: 'bodies are compared as JSON, whatever the order of their fields',
    from: [SCOPE],
    tests: [repeats('a repeated send is answered as the first was, and mails nobody again')],
  },
  {
    rule: 'the same key with another body is a 409 idempotency_conflict',
    from: ['Email > The same key with a', 'Errors > idempotency_conflict'],
    answers: [
      'POST /api/v1/email/send: idempotency_conflict',
      'POST /api/v1/email/batch: idempotency_conflict',
    ],
    tests: [
      repeats('a repeated send is answered as the first was, and mails nobody again'),
      failures('the key of a batch counts for its body, and for an hour'),
    ],
  },
  {
    rule: 'while the first is in flight a repeat is a 409 conflict; fifty at once are one',
    from: [SCOPE, 'Errors > conflict'],
    answers: ['POST /api/v1/email/send: conflict', 'POST /api/v1/email/batch: conflict'],
    tests: [
      repeats('a repeat that comes while the first is in flight is a conflict'),
      repeats('fifty at once become one mail'),
      failures('fifty equal batches at once become one'),
    ],
  },
  {
    rule: 'keys expire after an hour',
    from: ['Email > Keys expire after 1 hour'],
    tests: [
      repeats('a key and its stored response expire after an hour'),
      failures('the key of a batch counts for its body, and for an hour'),
    ],
  },
  {
    rule: 'a key counts for its workspace, kind of API key, method and path',
    from: [SCOPE],
    tests: [
      repeats('a key is known by workspace and kind of key, not by API key'),
      repeats('scheduled sends and batches are repeated in the same way'),
      repeats('a repeat needs a valid key and its permission like any request'),
    ],
  },
  {
    rule: 'only successes are kept, in the transaction that accepts the mail',
    from: [SCOPE],
    tests: [
      repeats('a refused request is not remembered: once corrected, it can be sent with the same key'),
      failures('${name} that cannot be stored is a 500, leaves nothing, and can be repeated'),
    ],
  },
]
