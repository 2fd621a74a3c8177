/** The load of the benchmark `host`, the same in both languages: model calls of a support desk. */

/**
 * Kinds of input. `sentences`: one text. All texts differ, and many mention passwords, tokens and keys. `conversation`: all
 * messages so far, so each call repeats most messages of the previous one. The messages of this shop's agent mention no
 * credentials.
 */
export const KINDS = ['sentences', 'conversation'] as const
export type Kind = (typeof KINDS)[number]

/** `nothing` shows the pauses of the machine itself. */
export type Recorder = 'tacho' | 'opentelemetry' | 'langfuse' | 'nothing'

export interface Message {
  role: string
  content: string
}

export interface ModelCall {
  model: string
  input: string | Message[] | Record<string, number>
  output: string
  promptTokens: number
  completionTokens: number
}

export interface HostLoad {
  by: Recorder
  /** Folder of the recorder's packages; empty for those of this repository. */
  folder: string
  /** URL of a service that answers at once and counts events by MARK. */
  url: string
  /** Number of messages in the input of a call; 0: the input is one text. */
  messages: number
  /** Number of keys in the object that is the input of each call; 0: the input is a text or messages. */
  keys: number
  /** File with texts, as one JSON string per line. Each recorded text gets a new number at its beginning. */
  texts: string
  /** Number of calls between two flushes. With more, some recorders would drop calls, because their queues would overflow. */
  burst: number
  seconds: number
}

export interface HostCost {
  /** Processor time of the whole process per event, until everything is delivered. */
  totalUs: number
  /** Median duration of a record call. */
  callUs: number
  /** Longest time between two turns of the host's event loop, without the time in which other programs ran. */
  pauseMs: number
}

/** The model of each call, by which arrived events are counted. */
export const MARK = 'bench-model-7'
export const TEXTS = 64
export const QUICK_TEXTS = 8
/** Length of the number at the beginning of each recorded text, which makes all texts different. */
export const NUMBER_CHARS = 12

const SENTENCES = `
The customer wrote that the parcel arrived on Tuesday, but the box was empty and the tape had been cut open.
I checked order 48213 in the shop system: it was packed at 14:02, weighed 1.2 kg and left the warehouse the same day.
Our carrier shows "delivered to neighbour"; the name on the receipt is hard to read.
A refund of 129.90 EUR is possible without a supervisor, because the amount is under the limit of 150.00 EUR.
Would you prefer a replacement, or should I return the money to the card that you used?
The customer forgot the password of the shop and could not see the invoice, so support sent a new link.
Please wait a moment while I look for the tracking number in the list of shipments.
The policy says: "Refunds over 500 EUR need the approval of a person."
It answered within 340 ms and used 1,204 tokens, which is less than the average of last week.
She also asked whether the keyboard with the German layout will be in stock again before Christmas.
The author of the review liked the battery, the passenger seat and the quiet engine, but not the colour.
1. Find the order. 2. Check the delivery. 3. Offer a refund or a replacement. 4. Close the ticket.
There is no entry for that address; maybe the street was renamed, or the postcode has a typing error.
The key to the answer is the date: returns are free for 30 days, and this is day 12.
As a next step I will call the tool that creates a return label and attach it to the ticket.
Thank you for your patience, and have a pleasant weekend!
The device sends a token to the phone, the phone shows a picture, and the door opens.
Temperature 21.5 degrees, humidity 40 %, no alarms since 06:00; the sensor on the roof needs a new battery.
In the second paragraph the contract speaks of "working days", not of calendar days, so the period ends on the 17th.
We compared three suppliers: the first is cheaper, the second delivers faster, and the third one speaks French.
`
  .trim()
  .split('\n')

const TURNS = `
I would like to know when the blue lamp that I ordered last Tuesday is going to arrive.
{"orders":[{"id":48213,"items":[{"sku":"LMP-004","name":"Desk lamp, blue","count":1,"price":39.9}],"state":"shipped"}]}
It left the warehouse this morning and should be with you on Friday; the driver calls an hour before.
Could you change the address to the office? I am there from nine to five, on the third floor.
{"status":"ok","shipment":{"carrier":"DHL","legs":[{"from":"Leipzig","to":"Hamburg","eta":"2026-03-14T09:30:00Z"}]}}
Done: the new address is on the label. Is there anything else that you need?
The function returns early when the list is empty, so the total below it was never computed in that branch.
def total(rows):\n    result = 0\n    for row in rows:\n        result += row.amount * row.count\n    return result
All 214 tests are green; the slowest one took 1.8 s and waits for a timer.
Which of both colours goes better with a light oak table? I have a warm white light in the room.
<html><body><h1>Desk lamps</h1><ul><li>Blue, 39.90</li><li>Grey, 34.90</li></ul></body></html>
The grey one is out of stock until the end of the month, but I can put you on the list.
`
  .trim()
  .split('\n')
  .map((line) => line.replaceAll('\\n', '\n'))

const END = ' Is that so?'

/** Number of messages in a call's input. */
export const messagesOf = (length: number, kind: Kind): number =>
  kind === 'sentences' ? 0 : length > 10_000 ? 60 : length > 1_000 ? 20 : 4

/** Different texts of this length. They are ASCII, like most texts of models. */
export function modelTexts(length: number, kind: Kind, count: number): string[] {
  const lines = kind === 'sentences' ? SENTENCES : TURNS
  const units = Math.floor(length / (messagesOf(length, kind) || 1))
  let state = 1
  const next = (): string => {
    state = (state * 48_271) % 2_147_483_647
    return lines[state % lines.length] ?? ''
  }
  return Array.from({ length: count }, (_, index) => {
    let text = `${index}. `.padStart(NUMBER_CHARS)
    for (let sentence = 1; text.length < units; sentence++) text += `${next()}${sentence % 5 === 0 ? '\n\n' : ' '}`
    // A fixed end, because a text that is cut inside the word "password" may look like the name of a credential.
    return `${text.slice(0, units - END.length)}${END}`
  })
}
