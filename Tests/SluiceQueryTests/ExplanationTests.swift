import SluiceQuery
import Testing

struct ExplanationTests {
    @Test
    func `an explanation shows paths, types, and how each comparison is decided`() throws {
        let text = """
            name == 'x' AND (books.author.age > 30.5 OR NOT SUBQUERY(books, $b, $b.price * 2 > 4).@count == 0) AND {1} == codes \
            AND ANY tags.@type == 'string' AND place GEOWITHIN geoCircle([1, 2], 3) AND about TEXT 'a -b*' AND books.@max.pages > 1 SORT(owner.age DESC) LIMIT(3)
            """
        #expect(
            try Library.bind(text).explanation == """
                and
                  Shop.name (string) == string("x") (string), on the row
                  or
                    ANY Shop.books[*]→Book.author→Person.age (int) > double(30.5) (int), over the graph
                    not
                      count of $1 in Shop.books[*]→Book (int) == int(0) (int), over the graph
                        where $1 is each Book
                          ($1.price * int(2)) (double) > int(4) (double), over the graph
                  ANY {int(1)} (int) == ANY Shop.codes[*] (int), pair by pair
                  ANY Shop.tags[*].@type (@type) == string (@type), by the names of types
                  Shop.place⊃Place (object) is within a circle
                  Shop.about (string) contains the words a -b*
                  Shop.books[*]→Book.pages.@max (int) > int(1) (int), over the graph
                sort by Shop.owner→Person.age descending
                limit 3
                """)
    }
}
