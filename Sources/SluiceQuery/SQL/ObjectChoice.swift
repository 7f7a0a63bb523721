package import SluiceCore

/// A selection among the objects that meet a condition: DISTINCTs first, then a limit, both in an order.
///
/// Values have the order of the query language: null, NaN, then all others. Primary keys decide between equal objects.
package struct ObjectChoice: Hashable, Sendable {
    package var limit: Int
    /// The sort keys, the most significant first.
    package var order: [Key]
    /// The DISTINCTs, applied in sequence before `limit` counts.
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

    /// A DISTINCT. It keeps the first of the objects that are equal in all paths. Without paths, all objects are equal.
    package struct Distinct: Hashable, Sendable {
        package var paths: [Path]
        package var order: [Key]

        package init(paths: [Path], order: [Key]) {
            self.paths = paths
            self.order = order
        }
    }

    /// A property of the object itself, or of an object at the end of links.
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
        /// The index of the link in its class.
        package var property: Int
        package var target: ObjectType
        /// The condition for targets that the user may read. All values of other targets are null.
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
