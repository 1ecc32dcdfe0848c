/** The search for contacts: whoever has all words in address and names is found, whatever the index knows of them. */
import t from 'tap'
import { listContacts } from '../../src/audience/contacts/contact-page-store.js'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { eachDatabase } from '../support/db/database.js'
import { NOW } from '../support/mailroom.js'

const PAGE = { limit: 1_000, offset: 0 }
const unhurried = () => {}
const SYLLABLES = ['an', 'bo', 'ca', 'de', 'é', '"', '%', 'ß', '👍', 'x_']
const CONTACTS = 400

eachDatabase(
  t,
  'a search finds the same contacts as a plain scan, for rare and common letters',
  async (t, database) => {
    const random = new SeededRandom(20261123)
    const name = () => {
      const syllables = Array.from(
        { length: 3 },
        () => SYLLABLES[Math.floor(random.fraction() * SYLLABLES.length)],
      )
      return syllables.join('')
    }
    const all = Array.from({ length: CONTACTS }, (_, at) => ({
      ...{ id: `c${at}`, email: `c${at}@mail.example.com`, firstName: name(), lastName: name() },
      ...{ attributes: {}, subscribed: true, createdAt: NOW },
    }))
    await database.write(tx => insertContacts(tx.db, 'w1', all))
    const folded = (text: string) => text.replaceAll('é', 'e').replaceAll('ß', 'ss')
    const texts = all.map(({ email, firstName, lastName }) =>
      [email, folded(firstName), folded(lastName)].join(String.fromCharCode(10)),
    )
    const partOf = (text: string) => {
      const letters = Array.from(text)
      const start = Math.floor(random.fraction() * (letters.length - 3))
      return letters.slice(start, start + 3 + Math.floor(random.fraction() * 4)).join('')
    }
    let met = 0
    for (let asked = 0; asked < 120; asked += 1) {
      const { firstName, lastName } = all[Math.floor(random.fraction() * CONTACTS)]!
      const words = [
        ['@mail.example.com', partOf(folded(firstName))],
        [partOf(folded(lastName)), 'example'],
        [`c${asked}@mail`],
        [partOf(folded(firstName)), partOf(folded(lastName)), '.com'],
      ][asked % 4]!
      const wanted = all.filter((_, at) => words.every(word => texts[at]!.includes(word)))
      const { items, total } = await listContacts(database.reader, 'w1', { words }, PAGE, unhurried)
      if (wanted.length > 0 && wanted.length < CONTACTS) met += 1
      t.same(
        items.map(({ id }) => id),
        wanted.map(({ id }) => id).reverse(),
        JSON.stringify(words),
      )
      t.equal(total, wanted.length)
    }
    t.ok(met > 60, `${met} searches mean some and not others`)
  },
)
