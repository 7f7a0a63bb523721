import SluiceCore
import TestSupport

/// What the roles of one class give beside the zones that are open: random, so that reading and writing differ in all ways.
struct OracleAccess {
    /// A role's write filter. Whatever it lets through may be read as well.
    enum Write {
        /// What its read filter is.
        case same
        case nothing
        case everything
        case zones(Set<String>)
        /// What the read filter would be, which is literally false.
        case alone
    }

    /// A field of which guests have another permission to read than to write.
    enum Odd: CaseIterable { case none, readOnly, writeOnly }

    let writes: [OracleApp.Role: Write]
    let odd: Odd
    let oddField: String
    /// The field that guests do not see, and the one that edits of the rules hide from them and show again.
    let hidden: String
    let veiled: String

    init(_ type: ObjectType, _ random: inout SplitMix64) {
        let fields = type.properties.dropFirst(2).map(\.name).shuffled(using: &random)
        (hidden, veiled, oddField) = (fields[0], fields[1], fields[2])
        odd = random.pick(Odd.allCases)
        var writes: [OracleApp.Role: Write] = [:]
        for role in OracleApp.Role.allCases { writes[role] = Self.write(&random) }
        self.writes = writes
    }

    private static func write(_ random: inout SplitMix64) -> Write {
        switch random.below(20) {
        case 0, 1: .nothing
        case 2: .everything
        case 3...6: .zones(Set([random.pick(OracleApp.zones), random.pick(OracleApp.zones)]))
        case 7, 8: .alone
        default: .same
        }
    }

    /// The zones whose objects a role lets its user see, nil being all.
    /// - Parameter read: those of its read filter.
    func visible(_ role: OracleApp.Role, read: Set<String>?) -> Set<String>? {
        switch writes[role] ?? .same {
        case .same, .nothing, .alone: read
        case .everything: nil
        case .zones(let zones): read.map { $0.union(zones) }
        }
    }

    /// `document_filters` of a role.
    func filters(_ role: OracleApp.Role, read: String) -> String {
        let write =
            switch writes[role] ?? .same {
            case .same, .alone: read
            case .nothing: "false"
            case .everything: "true"
            case .zones(let zones): Self.among(zones)
            }
        if case .alone? = writes[role] { return #"{ "read": false, "write": \#(write) }"# }
        return #"{ "read": \#(read), "write": \#(write) }"#
    }

    /// `fields` of guests.
    func masks(isVeiled: Bool) -> String {
        func mask(_ name: String, read: Bool, write: Bool) -> String { #""\#(name)": { "read": \#(read), "write": \#(write) }"# }
        var masks = [mask(hidden, read: false, write: false)]
        if isVeiled { masks.append(mask(veiled, read: false, write: false)) }
        switch odd {
        case .none: break
        case .readOnly: masks.append(mask(oddField, read: true, write: false))
        case .writeOnly: masks.append(mask(oddField, read: false, write: true))
        }
        return "{ \(masks.joined(separator: ", ")) }"
    }

    static func among(_ zones: Set<String>) -> String {
        #"{ "zone": { "$in": [\#(zones.sorted().map { "\"\($0)\"" }.joined(separator: ", "))] } }"#
    }
}
