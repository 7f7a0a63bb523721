public import Foundation
import SluiceCore
import SluiceQuery
import Synchronization

#if !canImport(Darwin)
    extension NSPredicate {
        /// Creates a predicate from a format, for this library's `filter` and `where:`. Foundation on this platform offers none.
        /// `evaluate(with:)` supports managed objects only and ends the program for others.
        public convenience init(format: String, _ args: Any...) { self.init(format: format, argumentArray: args) }

        /// Creates a predicate from a format with the arguments in an array.
        public convenience init(format: String, argumentArray: [Any]?) {
            let content = Confined(PredicateContent(format: format, arguments: argumentArray ?? []))
            self.init { object, _ in
                // This library passes an inquiry to get the format back from the block.
                if let inquiry = object as? PredicateInquiry {
                    inquiry.content = content.content
                    return true
                }
                return content.content.holds(for: object)
            }
            PredicateRegistry.insert(self)
        }
    }
#endif

/// The format and arguments of a format predicate.
struct PredicateContent {
    let format: String
    let arguments: [Any]

    func holds(for object: Any?) -> Bool {
        guard let object = object as? Object, let row = object._row else {
            throwRealmException("A predicate with a format can be evaluated with objects that a Realm manages only.")
        }
        let all = ResultsStorage(core: row.core, type: row.type)
        return all.narrowed(all.condition(format, arguments)).contains(row.key)
    }
}

/// An object that receives the content of the format predicate that is evaluated with it.
final class PredicateInquiry { var content: PredicateContent? }

/// The format predicates in use. Blocks of other predicates belong to apps, which expect app objects only.
private enum PredicateRegistry {
    private struct Entry {
        weak var predicate: NSPredicate?
    }

    private struct Entries: @unchecked Sendable {  // Sendable because: `Entry` holds a weak reference that is compared only.
        var byIdentity: [ObjectIdentifier: Entry] = [:]
        var bound = 64
    }

    private static let entries = Mutex(Entries())

    static func insert(_ predicate: NSPredicate) {
        let entry = Confined(Entry(predicate: predicate))
        let identity = ObjectIdentifier(predicate)
        entries.withLock { entries in
            entries.byIdentity[identity] = entry.content
            // Released predicates are swept when the table has doubled, so that an insertion costs O(1) amortized.
            guard entries.byIdentity.count > entries.bound else { return }
            entries.byIdentity = entries.byIdentity.filter { $0.value.predicate != nil }
            entries.bound = max(64, 2 * entries.byIdentity.count)
        }
    }

    static func contains(_ predicate: NSPredicate) -> Bool {
        let identity = ObjectIdentifier(predicate)
        return entries.withLock { $0.byIdentity[identity]?.predicate != nil }
    }
}

extension ElementCondition {
    private static func parts(of compound: NSCompoundPredicate) -> [NSPredicate] {
        #if canImport(Darwin)
            compound.subpredicates.compactMap { $0 as? NSPredicate }
        #else
            compound.subpredicates
        #endif
    }

    /// Converts a predicate.
    /// - Throws: as `parse`.
    static func of(_ predicate: NSPredicate, _ model: ElementModel) throws(SluiceError) -> ElementCondition {
        if let compound = predicate as? NSCompoundPredicate {
            let parts = try ElementCondition.parts(of: compound).map { part throws(SluiceError) in
                try of(part, model)
            }
            switch compound.compoundPredicateType {
            case .not: return .not(parts.first ?? .query(SyntaxQuery(.constant(true))))
            case .or: return parts.isEmpty ? .query(SyntaxQuery(.constant(false))) : parts.count == 1 ? parts[0] : .or(parts)
            default: return parts.isEmpty ? .query(SyntaxQuery(.constant(true))) : parts.count == 1 ? parts[0] : .and(parts)
            }
        }
        #if canImport(Darwin)
            // On Apple's platforms the format contains the constants.
            if !predicate.predicateFormat.hasPrefix("BLOCKPREDICATE") { return try parse(predicate.predicateFormat, [], model) }
        #endif
        let inquiry = PredicateInquiry()
        if PredicateRegistry.contains(predicate), predicate.evaluate(with: inquiry), let content = inquiry.content {
            return try parse(content.format, content.arguments, model)
        }
        // Any other predicate is a black box and is evaluated for each element.
        let block = Confined(predicate)
        return .block { block.content.evaluate(with: $0) }
    }
}
