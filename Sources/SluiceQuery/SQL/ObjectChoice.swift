package import SluiceCore

/// A choice among the objects that meet a condition: of those that are equal in some paths the first, and of what is left the first so many.
///
/// The order of values is the language's: null, NaN, then everything else. Where an order leaves objects equal their primary keys decide.
package struct ObjectChoice: Hashable, Sendable {
    package var limit: Int
    /// The most significant first.
    package var order: [Key]
    /// Applied one after the other, before `limit` counts.
    package var distinct: [Distinct]

    package init(limit: Int, order: [Key], distinct: [Distinct] = []) {
        self.limit = limit
        self.order = order
        self.distinct = distinct
    }

    package struct Key: Hashable, Sendable {
        package var path: Path
        package var isDescending: Bool

        package init(path: Path, isDescending: Bool) {
            self.path = path
            self.isDescending = isDescending
        }
    }

    /// Keeps the first of the objects that are equal in all paths; without paths one object.
    package struct Distinct: Hashable, Sendable {
        package var paths: [Path]
        package var order: [Key]

        package init(paths: [Path], order: [Key]) {
            self.paths = paths
            self.order = order
        }
    }

    /// A property of the object itself, or of the one that links lead to.
    package struct Path: Hashable, Sendable {
        package var links: [Link]
        package var property: Int

        package init(links: [Link] = [], property: Int) {
            self.links = links
            self.property = property
        }
    }

    /// A link from one object to one other.
    package struct Link: Hashable, Sendable {
        /// Index in the class that links.
        package var property: Int
        package var target: ObjectType
        /// The targets that count. Every value of another one is null.
        package var readable: Predicate

        package init(property: Int, target: ObjectType, readable: Predicate) {
            self.property = property
            self.target = target
            self.readable = readable
        }
    }

    /// The links of all paths.
    package var links: [Link] {
        let keys = order + distinct.flatMap(\.order)
        return keys.flatMap(\.path.links) + distinct.flatMap(\.paths).flatMap(\.links)
    }
}
