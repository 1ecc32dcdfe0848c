// What the executable holds of mailparser (mailparser.cjs).
export { simpleParser } from 'mailparser'
