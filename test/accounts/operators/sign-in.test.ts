/** Sign-in of operators on both databases: passwords, codes, links, sessions, tokens, and what ends them. */
import t from 'tap'
import { LoginGuard } from '../../../src/accounts/login-guard.js'
import { authenticateSession, authenticateToken } from '../../../src/accounts/operators/access.js'
import {
  changePassword,
  createToken,
  enableTotp,
  proposeTotp,
} from '../../../src/accounts/operators/credentials.js'
import { findOperator } from '../../../src/accounts/operators/operator-store.js'
import {
  createOperator,
  removeOperator,
  removeRole,
  resetOperator,
  setRole,
} from '../../../src/accounts/operators/operators.js'
import { Passwords } from '../../../src/accounts/operators/password.js'
import {
  confirmSignIn,
  signInWithCode,
  signInWithLink,
  signInWithPassword,
  signOut,
} from '../../../src/accounts/operators/sign-in.js'
import { fromBase32, totpCode } from '../../../src/accounts/operators/totp.js'
import { plainBox } from '../../../src/accounts/secret-box.js'
import { uuidv7 } from '../../../src/core/ids.js'
import type { Database } from '../../../src/db/database.js'
import { mayOperate, requireRecentSignIn, shellOperator } from '../../../src/http/operator.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { eachDatabase } from '../../support/db/database.js'
import { addWorkspace } from '../../support/mailroom.js'

const PASSWORD = 'correct horse battery'
const HOME = { peer: '192.0.2.1', userAgent: 'browser' }
const ELSEWHERE = { peer: '198.51.100.7', userAgent: 'browser' }
const HOUR_MS = 3_600_000
const SHELL = shellOperator('')

async function office(database: Database) {
  await addWorkspace(database)
  const clock = new FakeClock()
  const random = new SeededRandom()
  const parts = {
    database,
    clock,
    random,
    newId: () => uuidv7(clock.now(), random.bytes(10)),
    box: plainBox,
    passwords: new Passwords(random, { ln: 4, r: 8, p: 1 }),
    guard: new LoginGuard(clock, { failures: 5, lockoutMs: 15 * 60_000 }),
    log: new FakeLog(),
  }
  const { operator, link } = await createOperator(
    parts,
    { email: 'Ann@Example.com', name: 'Ann', grant: { workspaceId: '*', role: 'owner' } },
    'sign_in',
    SHELL,
  )
  const { token: first } = await signInWithLink(parts, link, HOME)
  const ann = await authenticateSession(parts, first)
  await changePassword(parts, ann, PASSWORD)
  return {
    ...parts,
    parts,
    link,
    ann: operator,
    first,
    signIn: (password = PASSWORD, client = HOME, email = 'ann@example.com') =>
      signInWithPassword(parts, { email, password }, client),
    who: (token: string) => authenticateSession(parts, token),
    /** @returns a function that gives the current code of Ann's authenticator app */
    enableTotp: async () => {
      const { secret } = proposeTotp(random, 'mail.example.com', operator.email)
      const code = () => totpCode(fromBase32(secret) ?? Buffer.alloc(0), Math.floor(clock.now() / 30_000))
      const recovery = await enableTotp(parts, operator.id, secret, code(), SHELL.actor)
      return { code, recovery }
    },
  }
}

const UNAUTHORIZED = { code: 'unauthorized' }

eachDatabase(t, 'a password opens a session that says who it is', async (t, database) => {
  const { signIn, who, ann } = await office(database)
  const { token, needsCode } = await signIn()
  t.equal(needsCode, false)
  t.match(token, /^[\w-]{43}$/)
  t.match(await who(token), {
    id: ann.id,
    email: 'ann@example.com',
    grants: [{ workspaceId: '*', role: 'owner' }],
  })
})

eachDatabase(t, 'addresses are compared without regard to case', async (t, database) => {
  const { signIn, ann } = await office(database)
  t.equal((await signIn(PASSWORD, HOME, 'ANN@example.COM')).operator.id, ann.id)
})

eachDatabase(t, 'a wrong password and an unknown account get the same answer', async (t, database) => {
  const { signIn } = await office(database)
  const refusals = await Promise.allSettled([
    signIn('wrong horse battery'),
    signIn(PASSWORD, HOME, 'bob@example.com'),
  ])
  const [wrong, unknown] = refusals.map(one =>
    one.status === 'rejected' ? (one.reason as Error).message : 'let in',
  )
  t.equal(wrong, unknown)
  t.match(refusals, [{ reason: UNAUTHORIZED }, { reason: UNAUTHORIZED }])
})

eachDatabase(
  t,
  'after five wrong passwords from an address the right one is refused there',
  async (t, database) => {
    const { signIn, clock } = await office(database)
    for (let n = 0; n < 5; n++) await t.rejects(signIn(`wrong ${n}`, ELSEWHERE), UNAUTHORIZED)
    await t.rejects(signIn(PASSWORD, ELSEWHERE), { code: 'rate_limited' })
    t.ok((await signIn(PASSWORD, HOME)).token, 'elsewhere it works')
    clock.skip(15 * 60_000)
    t.ok((await signIn(PASSWORD, ELSEWHERE)).token, 'and there again after the lockout')
  },
)

eachDatabase(t, 'a session ends after twelve idle hours', async (t, database) => {
  const { signIn, who, clock } = await office(database)
  const { token } = await signIn()
  clock.skip(11 * HOUR_MS)
  await t.resolves(who(token))
  clock.skip(11 * HOUR_MS)
  await t.resolves(who(token), 'use prolongs it')
  clock.skip(12 * HOUR_MS)
  await t.rejects(who(token), UNAUTHORIZED)
})

eachDatabase(t, 'a session ends after seven days, however much it is used', async (t, database) => {
  const { signIn, who, clock } = await office(database)
  const { token } = await signIn()
  for (let hours = 0; hours < 7 * 24 - 11; hours += 11) {
    clock.skip(11 * HOUR_MS)
    await t.resolves(who(token))
  }
  clock.skip(11 * HOUR_MS)
  await t.rejects(who(token), UNAUTHORIZED)
})

eachDatabase(t, 'signing out ends the session', async (t, database) => {
  const { signIn, who, parts } = await office(database)
  const [one, other] = [await signIn(), await signIn()]
  await signOut(parts, one.token)
  await t.rejects(who(one.token), UNAUTHORIZED)
  await t.resolves(who(other.token))
  await signOut(parts, one.token)
})

eachDatabase(t, 'with TOTP a password alone opens nothing', async (t, database) => {
  const { signIn, who, enableTotp, clock, parts } = await office(database)
  const { code } = await enableTotp()
  clock.skip(30_000)
  const { token, needsCode } = await signIn()
  t.equal(needsCode, true)
  await t.rejects(who(token), UNAUTHORIZED)
  const complete = await signInWithCode(parts, token, code(), HOME)
  await t.resolves(who(complete.token))
  t.not(complete.token, token, 'the token is a new one')
  await t.rejects(who(token), UNAUTHORIZED)
  clock.skip(30_000)
  await t.rejects(signInWithCode(parts, token, code(), HOME), UNAUTHORIZED, 'the step was completed once')
})

eachDatabase(t, 'a code works once, also in two sign-ins at the same time', async (t, database) => {
  const { signIn, enableTotp, clock, parts } = await office(database)
  const { code } = await enableTotp()
  clock.skip(30_000)
  const pending = await Promise.all([signIn(), signIn()])
  const results = await Promise.allSettled(
    pending.map(({ token }) => signInWithCode(parts, token, code(), HOME)),
  )
  t.same(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
})

eachDatabase(t, 'the code that enabled TOTP does not sign in', async (t, database) => {
  const { signIn, enableTotp, parts } = await office(database)
  const { code } = await enableTotp()
  const { token } = await signIn()
  await t.rejects(signInWithCode(parts, token, code(), HOME), UNAUTHORIZED)
})

eachDatabase(t, 'a recovery code replaces the app once', async (t, database) => {
  const { signIn, who, enableTotp, parts } = await office(database)
  const { recovery } = await enableTotp()
  const once = await signInWithCode(parts, (await signIn()).token, recovery[3] ?? '', HOME)
  await t.resolves(who(once.token))
  await t.rejects(signInWithCode(parts, (await signIn()).token, recovery[3] ?? '', HOME), UNAUTHORIZED)
})

eachDatabase(t, 'guessing codes locks the account, the right code included', async (t, database) => {
  const { signIn, enableTotp, clock, parts } = await office(database)
  const { code } = await enableTotp()
  clock.skip(30_000)
  const { token } = await signIn()
  for (let n = 0; n < 5; n++)
    await t.rejects(signInWithCode(parts, token, String(100_000 + n), HOME), UNAUTHORIZED)
  await t.rejects(signInWithCode(parts, token, code(), HOME), { code: 'rate_limited' })
})

eachDatabase(
  t,
  'guessing in a session, as a thief of one would, locks the confirmation',
  async (t, database) => {
    const { signIn, who, enableTotp, clock, parts } = await office(database)
    const { code } = await enableTotp()
    clock.skip(30_000)
    const { token } = await signInWithCode(parts, (await signIn()).token, code(), HOME)
    const stolen = await who(token)
    for (let n = 0; n < 5; n++)
      await t.rejects(confirmSignIn(parts, stolen, { password: `wrong ${n}` }, ELSEWHERE), UNAUTHORIZED)
    await t.rejects(confirmSignIn(parts, stolen, { password: PASSWORD }, ELSEWHERE), { code: 'rate_limited' })
    for (let n = 0; n < 5; n++)
      await t.rejects(confirmSignIn(parts, stolen, { code: String(100_000 + n) }, ELSEWHERE))
    clock.skip(30_000)
    await t.rejects(confirmSignIn(parts, stolen, { code: code() }, ELSEWHERE), { code: 'rate_limited' })
  },
)

// Checked before and counted after, one of many attempts at once would be right.
eachDatabase(t, 'of three hundred codes at once no more are checked than may fail', async (t, database) => {
  const { signIn, who, enableTotp, clock, parts } = await office(database)
  const { code } = await enableTotp()
  clock.skip(30_000)
  const right = code()
  const { token } = await signIn()
  const wrong = Array.from({ length: 299 }, (_, at) => String(100_000 + at)).filter(one => one !== right)
  const burst = (attempt: (one: string) => Promise<unknown>) =>
    Promise.allSettled([...wrong, right].map(attempt))
  const checkedIn = (results: readonly PromiseSettledResult<unknown>[]) =>
    results.filter(
      one => one.status === 'fulfilled' || (one.reason as { code: string }).code !== 'rate_limited',
    )
  const signIns = await burst(one => signInWithCode(parts, token, one, ELSEWHERE))
  t.equal(checkedIn(signIns).length, 5)
  t.notOk(signIns.some(({ status }) => status === 'fulfilled'))

  const session = await signInWithCode(parts, token, right, HOME)
  clock.skip(30_000)
  const stolen = await who(session.token)
  const passwords = await burst(one =>
    confirmSignIn(parts, stolen, { password: one }, { ...HOME, peer: '203.0.113.5' }),
  )
  t.equal(checkedIn(passwords).length, 5)
  const signInsByPassword = await burst(one =>
    signIn(one === right ? PASSWORD : one, { ...HOME, peer: '203.0.113.9' }),
  )
  t.ok(checkedIn(signInsByPassword).length <= 5)
  t.notOk(signInsByPassword.some(({ status }) => status === 'fulfilled'))
})

eachDatabase(t, 'right passwords at the same time are all let in', async (t, database) => {
  const { signIn } = await office(database)
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => signIn(PASSWORD, ELSEWHERE)))
  t.ok(results.every(({ status }) => status === 'fulfilled'))
})

eachDatabase(t, 'a code has to follow the password within five minutes', async (t, database) => {
  const { signIn, enableTotp, clock, parts } = await office(database)
  const { code } = await enableTotp()
  const { token } = await signIn()
  clock.skip(5 * 60_000)
  await t.rejects(signInWithCode(parts, token, code(), HOME), UNAUTHORIZED)
})

eachDatabase(t, 'a link signs in once and not after its time', async (t, database) => {
  const { link, parts, ann, clock, who } = await office(database)
  await t.rejects(signInWithLink(parts, link, HOME), UNAUTHORIZED, 'the new password ended it')
  const reset = await resetOperator(parts, ann.id, SHELL)
  await t.resolves(who((await signInWithLink(parts, reset.link, HOME)).token))
  await t.rejects(signInWithLink(parts, reset.link, HOME), UNAUTHORIZED)
  const late = await resetOperator(parts, ann.id, SHELL)
  clock.skip(HOUR_MS)
  await t.rejects(signInWithLink(parts, late.link, HOME), UNAUTHORIZED)
})

eachDatabase(t, 'a link does not get past TOTP', async (t, database) => {
  const { parts, random, clock } = await office(database)
  const { operator, link } = await createOperator(
    parts,
    { email: 'bob@example.com', grant: { workspaceId: 'w1', role: 'viewer' } },
    'invitation',
    SHELL,
  )
  const { secret } = proposeTotp(random, 'mail.example.com', operator.email)
  const step = Math.floor(clock.now() / 30_000)
  await enableTotp(
    parts,
    operator.id,
    secret,
    totpCode(fromBase32(secret) ?? Buffer.alloc(0), step),
    SHELL.actor,
  )
  const { token, needsCode } = await signInWithLink(parts, link, HOME)
  t.equal(needsCode, true)
  await t.rejects(authenticateSession(parts, token), UNAUTHORIZED)
})

eachDatabase(t, 'a new password ends all other sessions at once', async (t, database) => {
  const { signIn, who, parts } = await office(database)
  const [mine, stolen] = [await signIn(), await signIn(PASSWORD, ELSEWHERE)]
  await changePassword(parts, await who(mine.token), 'another horse battery')
  await t.resolves(who(mine.token))
  await t.rejects(who(stolen.token), UNAUTHORIZED)
  await t.rejects(signIn(PASSWORD), UNAUTHORIZED)
})

eachDatabase(t, 'a password that is changed while it is checked opens nothing', async (t, database) => {
  const { first, who, parts, random } = await office(database)
  const ann = await who(first)
  class SlowPasswords extends Passwords {
    override async matches(stored: string | undefined, password: string): Promise<boolean> {
      const isRight = await parts.passwords.matches(stored, password)
      if (isRight) await changePassword(parts, ann, 'another horse battery')
      return isRight
    }
  }
  const login = { email: 'ann@example.com', password: PASSWORD }
  await t.rejects(
    signInWithPassword({ ...parts, passwords: new SlowPasswords(random) }, login, HOME),
    UNAUTHORIZED,
  )
})

eachDatabase(t, 'the database holds no token that could be used', async (t, database) => {
  const { parts, ann, signIn } = await office(database)
  const { token: session } = await signIn()
  const { token } = await createToken(parts, ann.id, { name: 'ansible' }, SHELL)
  const tables = ['operator_sessions', 'operator_tokens', 'operator_links'] as const
  const read = async () =>
    JSON.stringify(
      await Promise.all(tables.map(table => database.reader.selectFrom(table).selectAll().execute())),
    )
  t.notMatch(await read(), session)
  t.notMatch(await read(), token.slice(3, 30))
  const { link } = await resetOperator(parts, ann.id, SHELL)
  t.notMatch(await read(), link)
})

eachDatabase(t, 'short and guessable passwords are refused', async (t, database) => {
  const { first, who, parts, ann } = await office(database)
  const acting = await who(first)
  for (const password of ['short', 'x'.repeat(257), 'aaaaaaaaaaaaaaaa', 'abcabcabcabc', `${ann.email}1`])
    await t.rejects(
      changePassword(parts, acting, password),
      { code: 'validation_error', path: 'password' },
      password,
    )
})

eachDatabase(t, 'a reset ends sessions and tokens and forgets every credential', async (t, database) => {
  const { signIn, who, parts, ann, enableTotp } = await office(database)
  const { token } = await signIn()
  const api = await createToken(parts, ann.id, { name: 'ansible' }, SHELL)
  await enableTotp()
  await resetOperator(parts, ann.id, SHELL)
  await t.rejects(who(token), UNAUTHORIZED)
  await t.rejects(authenticateToken(parts, api.token), UNAUTHORIZED)
  await t.rejects(signIn(), UNAUTHORIZED)
  t.match(await findOperator(database.reader, { id: ann.id }), { passwordHash: null, totpSecret: null })
})

eachDatabase(t, 'a removed operator is out at once', async (t, database) => {
  const { parts, clock } = await office(database)
  const { operator, link } = await createOperator(
    parts,
    { email: 'bob@example.com', grant: { workspaceId: 'w1', role: 'operator' } },
    'invitation',
    SHELL,
  )
  const { token } = await signInWithLink(parts, link, HOME)
  const api = await createToken(parts, operator.id, { name: 'ansible' }, SHELL)
  await removeOperator(parts, operator.id, SHELL)
  await t.rejects(authenticateSession(parts, token), UNAUTHORIZED)
  await t.rejects(authenticateToken(parts, api.token), UNAUTHORIZED)
  t.ok(clock.now())
})

eachDatabase(t, 'the last owner can be neither removed nor demoted', async (t, database) => {
  const { parts, ann } = await office(database)
  await t.rejects(removeOperator(parts, ann.id, SHELL), { code: 'conflict' })
  await t.rejects(setRole(parts, ann.id, { workspaceId: '*', role: 'operator' }, SHELL), { code: 'conflict' })
  await t.rejects(removeRole(parts, ann.id, '*', SHELL), { code: 'conflict' })
  t.match(await findOperator(database.reader, { id: ann.id }), {
    grants: [{ workspaceId: '*', role: 'owner' }],
  })
  await createOperator(
    parts,
    { email: 'bob@example.com', grant: { workspaceId: '*', role: 'owner' } },
    'invitation',
    SHELL,
  )
  await removeOperator(parts, ann.id, SHELL)
  t.equal(await findOperator(database.reader, { id: ann.id }), undefined)
})

eachDatabase(t, 'an address has one account, and a role needs its workspace', async (t, database) => {
  const { parts, ann } = await office(database)
  const grant = { workspaceId: '*', role: 'viewer' } as const
  await t.rejects(createOperator(parts, { email: 'ann@EXAMPLE.com', grant }, 'invitation', SHELL), {
    code: 'duplicate',
  })
  await t.rejects(createOperator(parts, { email: 'no address', grant }, 'invitation', SHELL), {
    code: 'validation_error',
  })
  await t.rejects(setRole(parts, ann.id, { workspaceId: 'w9', role: 'viewer' }, SHELL), { code: 'not_found' })
})

eachDatabase(t, 'a token acts as its operator, within its role and its time', async (t, database) => {
  const { parts, ann, clock } = await office(database)
  const whole = await authenticateToken(
    parts,
    (await createToken(parts, ann.id, { name: 'all' }, SHELL)).token,
  )
  t.ok(mayOperate(whole, 'operators:write', '*'))
  const { token, row } = await createToken(
    parts,
    ann.id,
    {
      name: 'reports',
      role: 'viewer',
      expiresAt: clock.now() + HOUR_MS,
    },
    SHELL,
  )
  t.match(token, /^pa_[0-9A-Za-z]{40}$/)
  t.notMatch(JSON.stringify(row), token.slice(3, 30))
  const limited = await authenticateToken(parts, token)
  t.ok(mayOperate(limited, 'contacts:read', 'w1'))
  t.notOk(mayOperate(limited, 'contacts:write', 'w1'))
  clock.skip(HOUR_MS)
  await t.rejects(authenticateToken(parts, token), UNAUTHORIZED)
})

eachDatabase(t, 'sensitive actions need a sign-in of the last fifteen minutes', async (t, database) => {
  const { signIn, who, parts, clock } = await office(database)
  const { token } = await signIn()
  clock.skip(15 * 60_000 + 1)
  const acting = await who(token)
  t.throws(() => requireRecentSignIn(acting, clock.now()), { code: 'sign_in_required' })
  await t.rejects(confirmSignIn(parts, acting, { password: 'wrong horse' }, HOME), UNAUTHORIZED)
  const renewed = await confirmSignIn(parts, acting, { password: PASSWORD }, HOME)
  t.doesNotThrow(() => {
    requireRecentSignIn(acting, clock.now() - 15 * 60_000)
  })
  requireRecentSignIn(await who(renewed), clock.now())
  await t.rejects(who(token), UNAUTHORIZED, 'a stolen token gains nothing')
})
