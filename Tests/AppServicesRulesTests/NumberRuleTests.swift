import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceValues
import TestSupport
import Testing

/// Numbers of all kinds and sizes: rules about a document compare them as queries do, digit by digit.
@Suite struct `Numbers in rules` {
    private static let ints: [Int64] = [
        0, 1, 3, -1, -3, 1 << 53, 1 << 53 + 1, 1 << 53 - 1, -(1 << 53) - 1, 16_777_217, .max, .max - 1, .max - 511, .min, .min + 1,
    ]
    private static let doubles: [Double] = [
        0, -0.0, 0.1, 0.5, 3, -3, 0x1p53, 0x1p53 + 2, -0x1p53, 0x1p63, 0x1p63 - 1_024, -0x1p63, 16_777_216, 16_777_217, 1e22, 1e300,
        .leastNormalMagnitude,
    ]
    private static let decimals = [
        "0", "-0", "0.1", "0.10", "3", "3.000", "-3", "1e1", "9007199254740993", "9007199254740992", "9007199254740992.5",
        "9223372036854775807", "9223372036854775808", "1234567890123456789012345678901234", "1234567890123456789012345678901235",
        "0.1000000000000000055511151231257827", "1E-6176", "1E+6144", "9.5e15",
    ]
    /// More digits than a decimal has, which queries round, and what no number of the store is.
    private static let odd = ["12345678901234567890123456789012345", "12345678901234567890123456789012355", "NaN", "-Infinity"]

    private static let floats: [Float] = doubles.map { Float($0) } + [.nan, .infinity]
    private static let keptDecimals: [String] = decimals + ["NaN", "Infinity", "-Infinity"]

    private static func value(of type: String, _ random: inout SplitMix64) -> Value {
        let kind = type == "extra" ? random.below(4) : ["size": 0, "ratio": 1, "weight": 2, "account": 3][type] ?? 0
        if random.chance(5) { return .null }
        switch kind {
        case 0: return .int(random.pick(ints))
        case 1: return .double(random.pick(random.chance(15) ? [.nan, .infinity, -.infinity] : doubles))
        // A mixed property keeps a float, which is another number than its text.
        case 2: return .float(random.pick(type == "extra" ? [0, 0.5, 3, 16_777_216] : floats))
        default: return .decimal(Decimal128(random.pick(keptDecimals)) ?? .nan)
        }
    }

    private static func operand(_ random: inout SplitMix64) -> String {
        switch random.below(6) {
        case 0: return "\(random.pick(ints))"
        case 1: return #"{"$numberLong": "\#(random.pick(ints))"}"#
        case 2: return "\(random.pick(doubles))"
        case 3: return #"{"$numberDouble": "\#(random.chance(20) ? "NaN" : "\(random.pick(doubles))")"}"#
        default: return #"{"$numberDecimal": "\#(random.pick(random.chance(25) ? odd : decimals))"}"#
        }
    }

    private static func condition(_ random: inout SplitMix64) -> String {
        switch random.below(8) {
        case 0: operand(&random)
        case 1: #"{"$in": [\#(operand(&random)), \#(operand(&random))]}"#
        default: #"{"\#(random.pick(["$eq", "$ne", "$lt", "$lte", "$gt", "$gte"]))": \#(operand(&random))}"#
        }
    }

    @Test(arguments: seeds(3)) func `insert comes to what the same filter comes to`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<4 {
            let questions = (0..<15).map { _ in
                let name = random.pick(["size", "ratio", "weight", "account", "extra"])
                let filter = #"{"\#(name)": \#(Self.condition(&random))}"#
                return App.Question(property: name, filter: filter, values: (0..<20).map { _ in Self.value(of: name, &random) })
            }
            for (question, answer) in zip(questions, try await App.answers(to: questions)) {
                let predicate = try Query.parse(answer.query).predicate(on: App.task, in: App.schema)
                for (value, verdict) in zip(question.values, answer.verdicts) {
                    #expect(
                        (verdict == .allow) == predicate.matches([question.property: value]),
                        "seed \(seed): \(question.filter), which is \(answer.query), of \(value)")
                }
            }
        }
    }

    @Test(arguments: ["9e9999", "1E-6200", "1E-9223372036854775808", "1E9223372036854775807", "0x10", "", ".", "1e", "--1", "1_000"])
    func `a decimal that the store has not is refused with the rules`(digits: String) async throws {
        let app = App.filters(read: #"{"account": {"$eq": {"$numberDecimal": "\#(digits)"}}}"#, write: "false")
        #expect(await app.refusal?.contains("is not a value that a rule can compare with") == true, "\(digits)")
    }

    private static let neighbours: [(String, Value, Value)] = [
        ("size", .int(1 << 53), .int(1 << 53 + 1)), ("size", .int(.max - 1), .int(.max)), ("extra", .int(1 << 53 + 1), .double(0x1p53)),
        ("account", decimal("1234567890123456789012345678901234"), decimal("1234567890123456789012345678901235")),
    ]

    private static func decimal(_ digits: String) -> Value { .decimal(Decimal128(digits) ?? .nan) }

    @Test(arguments: neighbours)
    func `what may not change is held to its last digit`(name: String, before: Value, after: Value) async throws {
        let app = App(
            roles: """
                [{"name": "r", "apply_when": true, "document_filters": {"read": true, "write": true}, "read": true, "write": true,
                  "check_write": {"%%root.\(name)": "%%prevRoot.\(name)"}}]
                """)
        let writes = [before, after].map {
            ProposedWrite(type: App.task, operation: .update, before: [name: before], after: [name: $0])
        }
        #expect(try await app.verdicts(on: writes, by: user("ann")).map { $0 == .allow } == [true, false])
    }
}
