import t from 'tap'
import { generateKeyPairSync, createPublicKey } from 'node:crypto'
import {
  dkimRecord,
  parseDkimRecord,
  publicKeyText,
  recordMatchesKey,
} from '../../src/mail/dkim/dkim-record.js'

const rsa = publicKeyText(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey)
const ed25519 = publicKeyText(generateKeyPairSync('ed25519').publicKey)

t.test('an RSA key is published as SubjectPublicKeyInfo, an Ed25519 key as its bare 32 bytes', async t => {
  t.equal(
    createPublicKey({ key: Buffer.from(rsa, 'base64'), format: 'der', type: 'spki' }).asymmetricKeyType,
    'rsa',
  )
  t.equal(Buffer.from(ed25519, 'base64').length, 32)
  t.equal(dkimRecord('rsa', rsa), `v=DKIM1; k=rsa; p=${rsa}`)
  t.equal(dkimRecord('ed25519', ed25519), `v=DKIM1; k=ed25519; p=${ed25519}`)
})

t.test('the example key of RFC 8463 A.2 parses as an Ed25519 key', async t => {
  const txt = 'v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo='
  t.match(parseDkimRecord(txt), { algorithm: 'ed25519' })
  t.equal(recordMatchesKey(txt, '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo='), true)
})

t.test('a published record is recognized however the operator formatted it', async t => {
  for (const txt of [
    dkimRecord('rsa', rsa),
    `p=${rsa};k=rsa;v=DKIM1;`,
    `p=${rsa}`,
    `k = rsa ;\t p = ${rsa.slice(0, 100)} ${rsa.slice(100)} ; n=note; t=s; h=sha1:sha256; s=email`,
  ])
    t.equal(recordMatchesKey(txt, rsa), true, txt.slice(0, 40))
  t.equal(recordMatchesKey(dkimRecord('ed25519', ed25519), ed25519), true)
})

t.test('a record that would not verify our signatures does not match', async t => {
  const other = publicKeyText(generateKeyPairSync('ed25519').publicKey)
  for (const [what, txt] of Object.entries({
    'another key': dkimRecord('ed25519', other),
    'a revoked key': 'v=DKIM1; k=ed25519; p=',
    'no key': 'v=DKIM1; k=ed25519',
    'RSA by default': `v=DKIM1; p=${ed25519}`,
    'another version': `v=DKIM2; k=ed25519; p=${ed25519}`,
    'SHA-1 only': `v=DKIM1; k=ed25519; h=sha1; p=${ed25519}`,
    'not for mail': `v=DKIM1; k=ed25519; s=tlsrpt; p=${ed25519}`,
    SPF: 'v=spf1 -all',
    nothing: '',
  }))
    t.equal(recordMatchesKey(txt, ed25519), false, what)
})

t.test('a revoked key parses as a record with an empty key', async t => {
  t.match(parseDkimRecord('v=DKIM1; p='), { publicKey: '' })
  t.equal(parseDkimRecord('hello'), undefined)
})
