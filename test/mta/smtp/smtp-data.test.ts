import t from 'tap'
import { encodeData, findBareLineEnd } from '../../../src/mta/smtp/smtp-data.js'

const encode = (text: string) => encodeData(Buffer.from(text, 'latin1')).toString('latin1')

t.test('dots at line starts are doubled, others are not', async t => {
  t.equal(encode('.a\r\nb.c\r\n..d\r\n.\r\n'), '..a\r\nb.c\r\n...d\r\n..\r\n.\r\n')
})

t.test('dots on lines that follow each other are all doubled', async t => {
  t.equal(encode('.\r\n.\r\n.\r\n'), '..\r\n..\r\n..\r\n.\r\n')
})

t.test('a message that ends its last line gets no further line', async t => {
  t.equal(encode('a\r\n'), 'a\r\n.\r\n')
})

t.test('a message whose last line has no end gets one', async t => {
  t.equal(encode('a'), 'a\r\n.\r\n')
})

t.test('an empty message is the end alone', async t => {
  t.equal(encode(''), '.\r\n')
})

t.test('a CR or LF alone is found wherever it stands', async t => {
  const find = (text: string) => findBareLineEnd(Buffer.from(text, 'latin1'))
  t.equal(find('a\r\nb\r\n\r\nc'), undefined)
  t.equal(find(''), undefined)
  t.equal(find('\na'), 0)
  t.equal(find('a\nb\r\n'), 1)
  t.equal(find('a\r\nb\rc'), 4)
  t.equal(find('a\r'), 1)
  t.equal(find('a\r\r\n'), 1)
  t.equal(find('a\r\n\nb'), 3)
  t.equal(find('x\r\n\n.\r\n'), 3)
})
