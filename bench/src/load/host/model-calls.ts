/** The load of the benchmark `host`, the same in both languages: model calls of a support desk. */

/** `nothing` shows the pauses of the machine itself. */
export type Recorder = 'tacho' | 'opentelemetry' | 'langfuse' | 'nothing'

export interface HostLoad {
  by: Recorder
  /** Of its packages; empty for those of this repository. */
  folder: string
  /** Of a service that answers at once and counts events by MARK. */
  url: string
  /** A file of texts, one JSON text a line. */
  texts: string
  /** Calls between two flushes: more would overflow the queue of some recorders, which then drop them. */
  burst: number
  seconds: number
}

export interface HostCost {
  /** Processor time of the whole process for each event, until everything is delivered. */
  totalUs: number
  /** The median time of a record call. */
  callUs: number
  /** The longest time between two turns of the host, without the time in which other programs ran instead. */
  pauseMs: number
}

/** In the name of each call's model. */
export const MARK = 'bench-model-7'
export const TEXTS = 64

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

/** Texts of this length, none like another. ASCII, as most texts of models are. */
export function modelTexts(length: number): string[] {
  let state = 1
  const next = (): string => {
    state = (state * 48_271) % 2_147_483_647
    return SENTENCES[state % SENTENCES.length] ?? ''
  }
  return Array.from({ length: TEXTS }, (_, index) => {
    let text = `${index}. `
    for (let sentence = 1; text.length < length; sentence++) text += `${next()}${sentence % 5 === 0 ? '\n\n' : ' '}`
    return text.slice(0, length)
  })
}
