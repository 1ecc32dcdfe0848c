/** ACME accounts, certificates and challenges in the database. */
import t from 'tap'
import { plainBox, secretBox } from '../../src/accounts/secret-box.js'
import {
  changeAcmeState,
  findCertificateVersion,
  FRESH,
  readAccountKey,
  readAcmeState,
  readCertificate,
  readChain,
  sealAcmeKeys,
  writeAccountKey,
  writeCertificate,
} from '../../src/certificates/acme/acme-store.js'
import {
  deleteChallenges,
  insertChallenge,
  listChallenges,
} from '../../src/certificates/acme/challenge-store.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase } from '../support/db/database.js'

const CA = 'https://ca.test/directory'
const STAGING = 'https://staging.ca.test/directory'
const pem = (text: string) => `-----BEGIN PRIVATE KEY-----\n${text}\n-----END PRIVATE KEY-----\n`

eachDatabase(t, 'each ACME server has its own account and certificate', async (t, database) => {
  const { reader } = database
  t.same(await readAcmeState(reader, CA), FRESH)
  t.equal(await readAccountKey(reader, CA, plainBox), undefined)
  t.equal(await readCertificate(reader, CA, plainBox), undefined)
  await database.write(async ({ db }) => {
    await changeAcmeState(db, CA, { attempts: [1, 2], failures: 2, nextAttemptAt: 5, fault: 'refused' })
    await writeAccountKey(db, CA, pem('account'), plainBox)
    await changeAcmeState(db, CA, { suggested: { id: 'a', at: 7, askAgainAt: 8 }, isWanted: true })
    await writeAccountKey(db, STAGING, pem('staging'), plainBox)
  })
  t.same(await readAcmeState(reader, CA), {
    account: null,
    attempts: [1, 2],
    failures: 2,
    nextAttemptAt: 5,
    fault: 'refused',
    suggested: { id: 'a', at: 7, askAgainAt: 8 },
    isWanted: true,
  })
  await database.write(({ db }) =>
    changeAcmeState(db, CA, { account: 'https://ca.test/1', fault: null, suggested: null, isWanted: false }),
  )
  t.match(await readAcmeState(reader, CA), {
    account: 'https://ca.test/1',
    failures: 2,
    fault: null,
    suggested: null,
  })
  t.same(await readAcmeState(reader, STAGING), FRESH)
  t.equal(await readAccountKey(reader, CA, plainBox), pem('account'))
  t.equal(await readAccountKey(reader, STAGING, plainBox), pem('staging'))
  for (const [at, cert] of ['first', 'second'].entries()) {
    const stored = { cert, key: pem(cert) }
    t.equal(await database.write(({ db }) => writeCertificate(db, CA, stored, at, plainBox)), at + 1)
    t.equal(await findCertificateVersion(reader, CA), at + 1)
    t.same(await readCertificate(reader, CA, plainBox), stored)
    t.equal(await readChain(reader, CA), cert)
  }
  t.equal(await findCertificateVersion(reader, STAGING), undefined)
})

eachDatabase(
  t,
  'keys stored before secrets.key was set are sealed, each for its place',
  async (t, database) => {
    const { reader } = database
    const box = secretBox(Buffer.alloc(32, 1), new SeededRandom())
    await database.write(async ({ db }) => {
      for (const directory of [CA, STAGING]) {
        await writeAccountKey(db, directory, pem('account'), plainBox)
        await changeAcmeState(db, directory, { failures: 3 })
        await writeCertificate(db, directory, { cert: 'chain', key: pem('key') }, 1, plainBox)
      }
      await changeAcmeState(db, 'https://other.test/', { failures: 1 })
    })
    await database.write(({ db }) => sealAcmeKeys(db, box))
    const rows = async () => [
      await reader.selectFrom('acme_accounts').selectAll().orderBy('directory').execute(),
      await reader.selectFrom('acme_certificates').selectAll().orderBy('directory').execute(),
    ]
    const sealed = await rows()
    t.notMatch(JSON.stringify(sealed), /PRIVATE/)
    await database.write(({ db }) => sealAcmeKeys(db, box))
    t.same(await rows(), sealed, 'once')
    t.equal(await readAccountKey(reader, CA, box), pem('account'))
    t.same(await readCertificate(reader, STAGING, box), { cert: 'chain', key: pem('key') })
    t.match(await readAcmeState(reader, CA), { failures: 3 })
    const { private_key } = await reader
      .selectFrom('acme_certificates')
      .select('private_key')
      .where('directory', '=', STAGING)
      .executeTakeFirstOrThrow()
    await database.write(({ db }) => db.updateTable('acme_certificates').set({ private_key }).execute())
    await t.rejects(readCertificate(reader, CA, box), /does not open/, 'moved from another row')
  },
)

eachDatabase(t, 'challenges are listed until they expire or are withdrawn', async (t, database) => {
  const challenge = (token: string, expiresAt: number) => ({
    token,
    kind: 'http' as const,
    content: token,
    expiresAt,
  })
  const at = async (now: number) => (await listChallenges(database.reader, now)).map(({ token }) => token)
  await database.write(async ({ db }) => {
    await insertChallenge(db, challenge('a', 10), 0)
    await insertChallenge(db, challenge('b', 20), 0)
    await insertChallenge(db, challenge('a', 12), 0)
  })
  t.same(await at(0), ['a', 'b'])
  t.same(await at(12), ['b'])
  await database.write(({ db }) => deleteChallenges(db, []))
  await database.write(({ db }) => deleteChallenges(db, ['b']))
  t.same(await at(0), ['a'])
  await database.write(({ db }) => insertChallenge(db, challenge('c', 30), 12))
  t.same(await at(0), ['c'])
})
