/** Which message a report means by its Message-ID, which copies of one mail share. */
import t from 'tap'
import { matchMessage, possibleMessages, MessageTokens } from '../../src/inbound/effects/match-message.js'
import type { ReturnedFinding } from '../../src/inbound/parser-protocol.js'
import type { Message } from '../../src/messages/message-store.js'

const MAIL = '0192f000-0000-7000-8000-00000000aaaa'
const hostname = 'mail.one.test'
const tokens = new MessageTokens(undefined as never, [])

const message = (id: string, contentId: string, recipient: string) =>
  ({ id, contentId, recipient }) as unknown as Message

function match(messages: readonly Message[], recipients: readonly string[], to?: string) {
  const returned = {
    kind: 'bounce',
    form: 'dsn',
    messageId: `${MAIL}@${hostname}`,
    recipients: recipients.map(recipient => ({ recipient })),
    ...(to === undefined ? {} : { to }),
  } as unknown as ReturnedFinding
  t.same(possibleMessages(returned, hostname), [MAIL])
  const found = matchMessage(
    { messages: new Map(messages.map(one => [one.id, one])), tokens, hostname },
    returned,
  )
  return typeof found === 'object' ? [found.message.recipient, found.isConfirmed] : found
}

t.test(
  'of a mail with copies the recipient named in the report is matched, and none if it names none',
  async t => {
    // As in a batch, the message to the first recipient has the id of the content.
    const copies = [
      message(MAIL, MAIL, 'ann@one.test'),
      message('m2', MAIL, 'Carl@two.test'),
      message('m3', MAIL, 'dora@two.test'),
    ]
    t.same(match(copies, ['carl@two.test'], 'ann@one.test'), ['Carl@two.test', false])
    t.same(match(copies, ['dora@two.test'], 'Ann <ann@one.test>'), ['dora@two.test', false])
    t.equal(match(copies, [], 'ann@one.test'), 'unmatched', 'the To is that of all of them')
    t.equal(match(copies, ['eve@else.test'], 'ann@one.test'), 'unmatched')
    t.equal(match(copies, ['carl@two.test', 'dora@two.test'], 'ann@one.test'), 'unmatched', 'not one of two')
  },
)

t.test('a separate mail is also found by its To', async t => {
  const alone = [message(MAIL, 'c1', 'ann@one.test'), message('m2', 'c1', 'bob@one.test')]
  t.same(match(alone, [], 'Ann <ann@ONE.test>'), ['ann@one.test', false])
  t.equal(match(alone, ['bob@one.test'], 'bob@one.test'), 'unmatched')
})
