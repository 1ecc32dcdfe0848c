/** Base64 of attachments: long texts are read in pieces, and mean what they would mean read at once. */
import t from 'tap'
import { AppError } from '../../../src/core/errors.js'
import { decodeBase64, decodeLongBase64, isLongBase64 } from '../../../src/msa/rest/attachment-fields.js'
import { SeededRandom } from '../../../src/world/fake-random.js'

const random = new SeededRandom(7)
const octetsOf = (length: number) => random.bytes(length)
/** As Python's `base64.encodebytes` and many mail programs write it. */
const inLines = (text: string) => text.replace(/.{76}/g, '$&\r\n')

t.test('what is long comes out as it went in, however it is written', async t => {
  for (const length of [786_432, 786_433, 1_572_866, 1_600_000]) {
    const octets = octetsOf(length)
    const plain = octets.toString('base64')
    const forms = {
      plain,
      'in lines': inLines(plain),
      'url alphabet, unpadded': octets.toString('base64url'),
      unpadded: plain.replace(/=+$/, ''),
      'spaces at the end': `${plain}${' '.repeat(1_100_000)}`,
    }
    for (const [form, text] of Object.entries(forms)) {
      t.ok(isLongBase64(text) || length < 786_433, `${form} is long`)
      t.ok(octets.equals(await decodeLongBase64(text, 'x')), `${length} octets, ${form}`)
    }
  }
})

t.test('what is refused at once is refused in pieces, wherever the fault stands', async t => {
  const good = octetsOf(2_400_000).toString('base64')
  const faults = {
    'an invalid character': [good.slice(0, 9), '!', good.slice(10)],
    'the same near the end': [good.slice(0, -9), '!', good.slice(-8)],
    'padding in the middle': [good.slice(0, 1_500_002), '==', good.slice(1_500_004)],
    'cut off': [good.slice(0, -3)],
    'half a padding': [good.slice(0, -2), '='],
    'a wider character': [good.slice(0, 2_000_000), 'ł', good.slice(2_000_001)],
    'a data: URL': ['data:text/plain;base64,', good],
  }
  for (const [fault, pieces] of Object.entries(faults)) {
    const text = pieces.join('')
    const refused = new AppError('validation_error', '')
    t.throws(() => decodeBase64(text, 'attachments.0.content'), { code: refused.code }, fault)
    await t.rejects(
      decodeLongBase64(text, 'attachments.0.content'),
      { code: refused.code, path: 'attachments.0.content' },
      `${fault}, in pieces`,
    )
  }
})
