public import Foundation
import SluiceCore
import SluiceValues

/// A document of the server, such as a user's custom data.
public typealias Document = [String: AnyBSON?]

/// A value of a document.
public enum AnyBSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case int32(Int32)
    case int64(Int64)
    case double(Double)
    case string(String)
    case array([AnyBSON?])
    case document(Document)
    case objectId(ObjectId)
    case datetime(Date)
    case uuid(UUID)
    case binary(Data)
    case decimal128(Decimal128)
    /// Only the options `i`, `m`, `s` and `x` survive in a document.
    case regex(NSRegularExpression)
    /// Whole seconds in a document. MongoDB's increment within the second is not kept.
    case timestamp(Date)
    case minKey
    case maxKey

    /// Converts JSON, including extended forms. The last of equal keys wins.
    init(_ json: JSON) {
        switch json {
        case .null: self = .null
        case .bool(let v): self = .bool(v)
        case .int(let v): self = .int64(v)
        case .double(let v): self = .double(v)
        case .string(let v): self = .string(v)
        case .array(let v): self = .array(v.map { AnyBSON($0) })
        case .object(let members):
            self =
                AnyBSON(form: members) ?? ExtendedForm(json).flatMap(AnyBSON.init(extended:))
                ?? .document(Dictionary(members.map { ($0.key, AnyBSON($0.value)) }, uniquingKeysWith: { $1 }))
        }
    }

    /// Converts a form of extended JSON that objects of a Realm contain; nil for a link, which a document keeps as an object.
    private init?(extended form: ExtendedForm) {
        switch form {
        case .int(let v): self = .int64(v)
        case .double(let v): self = .double(v)
        case .decimal(let v): self = .decimal128(Decimal128(v))
        case .objectId(let v): self = .objectId(ObjectId(v))
        case .uuid(let v): self = .uuid(UUID(v))
        case .binary(let v): self = .binary(Data(v))
        case .timestamp(let v): self = .datetime(Date(v))
        case .link: return nil
        }
    }

    var json: JSON {
        switch self {
        case .null: .null
        case .bool(let v): .bool(v)
        case .int32(let v): .int(Int64(v))
        case .int64(let v): .int(v)
        case .double(let v): ExtendedForm.json(v)
        case .string(let v): .string(v)
        case .array(let v): .array(v.map { ($0 ?? .null).json })
        case .document(let v): .object(v.map { JSON.Member($0.key, ($0.value ?? .null).json) })
        case .objectId(let v): ["$oid": .string(v.stringValue)]
        case .datetime(let v): ["$date": ["$numberLong": .string("\(Self.milliseconds(v))")]]
        case .uuid(let v): ["$uuid": .string(v.uuidString.lowercased())]
        case .binary(let v): ExtendedForm.binary(Array(v)).json
        case .decimal128(let v): ["$numberDecimal": .string(v.stringValue)]
        case .regex(let v): ["$regularExpression": ["pattern": .string(v.pattern), "options": .string(Self.text(v.options))]]
        case .timestamp(let v): ["$timestamp": ["t": .int(Self.seconds(v)), "i": 0]]
        case .minKey: ["$minKey": 1]
        case .maxKey: ["$maxKey": 1]
        }
    }

    /// Milliseconds since 1970, rounded and clamped to 64 bits.
    private static func milliseconds(_ date: Date) -> Int64 {
        let exact = (date.timeIntervalSince1970 * 1_000).rounded()
        return Int64(exactly: exact) ?? (exact > 0 ? .max : .min)
    }
}
