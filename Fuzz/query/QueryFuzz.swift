// The query language under test by any text: it is parsed, printed, bound, checked as a subscription and split for the index; nothing may
// crash, disagree with itself or take long. `make fuzz` runs it.

import Glibc
import SluiceCore
import SluiceQuery

/// What the texts are about: a property of each kind.
private let sample = ObjectType(
    name: "Sample",
    properties: [
        Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "flag", type: .bool, isOptional: true),
        Property(id: 3, name: "number", type: .int, isOptional: true), Property(id: 4, name: "ratio", type: .double, isOptional: true),
        Property(id: 5, name: "small", type: .float, isOptional: true), Property(id: 6, name: "price", type: .decimal, isOptional: true),
        Property(id: 7, name: "name", type: .string, isOptional: true), Property(id: 8, name: "data", type: .binary, isOptional: true),
        Property(id: 9, name: "at", type: .timestamp, isOptional: true), Property(id: 10, name: "owner", type: .uuid, isOptional: true),
        Property(id: 11, name: "store", type: .string), Property(id: 12, name: "tags", type: .string, collection: .list),
        Property(id: 13, name: "scores", type: .int, collection: .set), Property(id: 14, name: "blend", type: .mixed),
        Property(id: 15, name: "friend", type: .link(to: "Sample"), isOptional: true),
        Property(id: 16, name: "other", type: .int, isOptional: true),
        Property(id: 17, name: "extra", type: .string, collection: .dictionary),
        Property(id: 18, name: "place", type: .embedded("Place"), isOptional: true), Property(id: 19, name: "a", type: .int),
    ])
private let fields = QueryableFields(global: Set(sample.properties.map(\.name)))
private let place = ObjectType(
    name: "Place", kind: .embedded,
    properties: [
        Property(id: 1, name: "type", type: .string), Property(id: 2, name: "coordinates", type: .double, collection: .list),
    ], primaryKey: nil)
private let schema = Schema([sample, place])
private let arguments: [Value] = [.int(1), .string("a*"), .list([.int(1), .null]), .double(.nan)]

/// For each stage of one text of 64 KiB, nanoseconds of one core; shorter texts have a tenth of it at least, as clocks are coarse.
/// Code that counts its edges for the fuzzer takes up to three times as long.
#if FUZZER
    private let allowance: UInt64 = 30_000_000
#else
    private let allowance: UInt64 = 10_000_000
#endif

/// What is timed by itself. Texts of clients pass through all but `whole`, the binder of the whole language, which only sees an app's own
/// queries.
enum Stage: String, CaseIterable {
    case parse, print, bind, whole, check, index

    func allowed(_ bytes: Int) -> UInt64 {
        max(allowance / 10, allowance * UInt64(bytes) / 65_536)
    }
}

struct Clock {
    var spent: [Stage: UInt64] = [:]

    mutating func time<T>(_ stage: Stage, _ body: () throws -> T) rethrows -> T {
        let start = Clock.now
        defer { spent[stage, default: 0] += Clock.now - start }
        return try body()
    }

    private static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

private func require(_ condition: Bool, _ sentence: @autoclosure () -> String) {
    if !condition { fatalError(sentence()) }
}

private func isRefusal(_ error: any Error) -> Bool {
    guard let error = error as? SluiceError else { return false }
    return (300..<350).contains(error.code.rawValue) && !error.message.isEmpty
}

/// All that is done with one text.
func run(_ text: String, _ clock: inout Clock) {
    let query: Query
    do {
        query = try clock.time(.parse) { try Query.parse(text) }
    } catch {
        require(isRefusal(error) && "\(error)".utf8.count < 2_000, "an error of the parser: \(error)")
        return
    }
    let printed = clock.time(.print) { query.canonicalText }
    guard let again = try? Query.parse(printed) else { fatalError("the canonical text does not parse: \(printed)") }
    require(again == query && again.hashValue == query.hashValue, "the canonical text is another query: \(printed)")
    require(again.canonicalText.utf8.elementsEqual(printed.utf8), "the canonical text of the canonical text is another one: \(printed)")
    do {
        let predicate = try clock.time(.bind) { try query.predicate(on: sample, in: schema, arguments: arguments) }
        let entries = clock.time(.index) { predicate.indexForm(indexedProperty: 10) }
        require(Set(entries).count == entries.count, "an entry stands twice")
    } catch { require(isRefusal(error), "an error of the binder: \(error)") }
    do {
        let bound = try clock.time(.whole) { try query.bind(to: sample, in: schema, arguments: arguments.map { .value($0) }) }
        require((try? Query.parse(bound.canonicalText)) != nil, "what is bound does not print as a query: \(bound.canonicalText)")
    } catch { require(isRefusal(error), "an error of the whole language's binder: \(error)") }
    do {
        _ = try clock.time(.check) {
            try Subscription.check(type: sample, query: query, arguments: arguments, in: schema, fields: fields)
        }
    } catch { require(isRefusal(error), "an error of the subscription check: \(error)") }
}

/// The least times that the stages took in several runs: a machine may be busy once, a slow text is slow always. Stops early when all
/// are within what is allowed; otherwise the slowest stage is named.
func times(_ text: String, attempts: Int = 5) -> (least: [Stage: UInt64], slow: Stage?) {
    var least: [Stage: UInt64] = [:]
    for _ in 0..<attempts {
        var clock = Clock()
        run(text, &clock)
        for (stage, time) in clock.spent { least[stage] = min(least[stage] ?? .max, time) }
        if least.allSatisfy({ $1 <= $0.allowed(text.utf8.count) }) { return (least, nil) }
    }
    return (least, least.max { $0.value < $1.value }?.key)
}

#if FUZZER
    @c(LLVMFuzzerTestOneInput)
    public func fuzzOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
        let (least, slow) = times(String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        if let slow { fatalError("\(slow) took \((least[slow] ?? 0) / 1_000) µs for \(count) bytes") }
        return 0
    }
#endif
