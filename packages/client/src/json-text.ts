/** A body that is JSON already, sent as it is: a payload keeps every digit, and each attempt sends the same bytes. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}
