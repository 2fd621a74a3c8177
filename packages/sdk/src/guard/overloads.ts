/**
 * The types of a guarded tool with several signatures. TypeScript infers the last eight, and repeats the first of a shorter list.
 * Type parameters are inferred as `unknown`.
 */
export type Tool = (this: never, ...args: never[]) => unknown

type Guarded<This, Args extends unknown[], T> = (this: This, ...args: Args) => Promise<Awaited<T>>

type IsSame<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** The type of the arguments at a position. */
type At<Args, Place> = Args extends unknown[]
  ? Place extends keyof Args
    ? Args[Place]
    : number extends Args['length']
      ? Args[number]
      : undefined
  : never

/** The arguments of any overload. A union of tuples would accept no function with fewer parameters. */
type AnyOf<Args> = [
  At<Args, '0'>,
  At<Args, '1'>,
  At<Args, '2'>,
  At<Args, '3'>,
  At<Args, '4'>,
  At<Args, '5'>,
  At<Args, '6'>,
  At<Args, '7'>,
]

/**
 * The type `never` if the tool has one signature. If all its signatures return promises, the guarded tool has the tool's own
 * type, with its type parameters.
 */
export type OverloadsOf<T extends Tool> = T extends {
  (this: infer S1, ...args: infer A1): infer R1
  (this: infer S2, ...args: infer A2): infer R2
  (this: infer S3, ...args: infer A3): infer R3
  (this: infer S4, ...args: infer A4): infer R4
  (this: infer S5, ...args: infer A5): infer R5
  (this: infer S6, ...args: infer A6): infer R6
  (this: infer S7, ...args: infer A7): infer R7
  (this: infer S8, ...args: infer A8): infer R8
}
  ? IsSame<[S1, A1, R1], [S8, A8, R8]> extends true
    ? never
    : {
        args: AnyOf<A1 | A2 | A3 | A4 | A5 | A6 | A7 | A8>
        guarded: [
          keyof T,
          Promise<Awaited<R1>>,
          Promise<Awaited<R2>>,
          Promise<Awaited<R3>>,
          Promise<Awaited<R4>>,
          Promise<Awaited<R5>>,
          Promise<Awaited<R6>>,
          Promise<Awaited<R7>>,
          Promise<Awaited<R8>>,
        ] extends [never, R1, R2, R3, R4, R5, R6, R7, R8]
          ? T
          : Guarded<S1, A1, R1> &
              Guarded<S2, A2, R2> &
              Guarded<S3, A3, R3> &
              Guarded<S4, A4, R4> &
              Guarded<S5, A5, R5> &
              Guarded<S6, A6, R6> &
              Guarded<S7, A7, R7> &
              Guarded<S8, A8, R8>
      }
  : never

/** The type `never`, which nothing fits, unless the tool is overloaded. */
export type Overloaded<T extends Tool> = [OverloadsOf<T>] extends [never] ? never : T
